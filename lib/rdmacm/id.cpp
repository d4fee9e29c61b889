#include "rdmacm/id.hpp"

#include <arpa/inet.h>
#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "rdmacm/addresses.hpp"
#include "rdmacm/queue_pair.hpp"

// Exported by libibverbs.so.1 with a private symbol version for this library.
extern "C" roci::cm::Service* roci_cm_service(ibv_context* context);

namespace roci::rdmacm {
namespace {

constexpr Nanos kMillisecond{1'000'000};
constexpr uint8_t kExactly = 2;  // selector of path records: exact value

bool known_space(rdma_port_space space) {
  return space == RDMA_PS_TCP || space == RDMA_PS_UDP || space == RDMA_PS_IPOIB || space == RDMA_PS_IB;
}

struct Opened {
  std::mutex mutex;
  ibv_context* context = nullptr;
  ibv_pd* pd = nullptr;
  ibv_xrcd* xrc_domain = nullptr;
};
Opened& opened() {
  static auto* const kOpened = new Opened;
  return *kOpened;
}

ibv_context* device() {
  ibv_context*& context = opened().context;
  const std::scoped_lock guard(opened().mutex);
  if (context != nullptr) return context;
  int count = 0;
  ibv_device** const list = ibv_get_device_list(&count);
  if (list == nullptr) return nullptr;
  if (count > 0) {
    context = ibv_open_device(list[0]);
  } else {
    errno = ENODEV;
  }
  ibv_free_device_list(list);
  return context;
}

// Binds the id to the device with this local address.
void use_source(Id& id, const Source& source) {
  id.verbs.verbs = device();
  if (id.verbs.pd == nullptr) id.verbs.pd = default_pd();
  id.sgid_index = source.gid_index;
  id.verbs.port_num = 1;
  id.verbs.route.addr.addr.ibaddr.sgid = gid_of(source.address);
  id.verbs.route.addr.addr.ibaddr.pkey = 0xffff;
}

int take_port_for(Id& id, uint16_t wanted) {
  if (!reserve_port(id, wanted)) return failed(EADDRINUSE);
  set_service(id.verbs.route.addr.src_addr, id.service_id());
  return 0;
}

int bind(Id& id, const sockaddr* address) {
  if (id.phase != Phase::kIdle || size_of(address) == 0) return failed(EINVAL);
  ibv_context* const context = device();
  if (context == nullptr) return failed(ENODEV);
  const bool ib = address->sa_family == AF_IB;
  const auto space =
      ib ? space_of(*reinterpret_cast<const sockaddr_ib*>(address), id.verbs.ps) : std::optional(id.verbs.ps);
  if (!space) return failed(EPROTONOSUPPORT);
  id.service_space = *space;
  if (const auto ip = ip_of(*address)) {
    const auto source = own_source(context, *ip);
    if (!source) return failed(ib ? ENODEV : EADDRNOTAVAIL);
    use_source(id, *source);
  }
  std::memcpy(&id.verbs.route.addr.src_storage, address, size_of(address));
  if (address->sa_family == AF_INET) id.one_family = true;  // an IPv6 address may also accept IPv4
  id.service = roci_cm_service(context);
  if (id.service == nullptr) return failed(EIO);  // in a child process after fork()
  id.channel().service.store(id.service, std::memory_order_release);
  if (take_port_for(id, port_of(*address)) != 0) return -1;
  id.phase = Phase::kBound;
  return 0;
}

}  // namespace

int failed(int code) {
  errno = code;
  return -1;
}

int failed(const Error& error) { return failed(error.code != 0 ? error.code : EINVAL); }

ibv_context* open_device() { return device(); }

ibv_pd* default_pd() {
  ibv_context* const context = device();
  const std::scoped_lock guard(opened().mutex);
  if (opened().pd == nullptr && context != nullptr) opened().pd = ibv_alloc_pd(context);
  return opened().pd;
}

ibv_xrcd* default_xrc_domain() {
  ibv_context* const context = device();
  const std::scoped_lock guard(opened().mutex);
  if (opened().xrc_domain == nullptr && context != nullptr) {
    ibv_xrcd_init_attr attr{
        .comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = -1, .oflags = O_CREAT};
    opened().xrc_domain = ibv_open_xrcd(context, &attr);
  }
  return opened().xrc_domain;
}

void Id::on_resolved(Status found) {
  const bool here = found.has_value();
  phase = here ? Phase::kAddressResolved : Phase::kBound;
  report(*this, here ? RDMA_CM_EVENT_ADDR_RESOLVED : RDMA_CM_EVENT_ADDR_ERROR,
         here ? 0 : -found.error().code);
}

void set_path(Id& id, uint8_t mtu) {
  rdma_route& route = id.verbs.route;
  auto* path = new ibv_sa_path_rec{};
  path->sgid = route.addr.addr.ibaddr.sgid;
  path->dgid = route.addr.addr.ibaddr.dgid;
  path->slid = path->dlid = 0xffff;
  path->hop_limit = kHopLimit;
  path->traffic_class = id.traffic_class;
  path->numb_path = 1;
  path->reversible = 1;
  path->pkey = 0xffff;
  path->mtu_selector = path->rate_selector = path->packet_life_time_selector = kExactly;
  path->mtu = mtu;
  path->packet_life_time = kPacketLifetime;
  delete std::exchange(route.path_rec, path);
  route.num_paths = 1;
}

void destroy(Id& id) {
  if (id.service != nullptr) {
    if (id.phase == Phase::kListening) id.service->ignore(id.listener);
    id.service->give_up(id);
    if (id.connection != nullptr) id.service->destroy(*id.connection);
  }
  leave_events(id);
  if (id.port != 0 && !id.of_listener) release_port(id);
  delete id.verbs.route.path_rec;
  if (id.synchronous) rdma_destroy_event_channel(id.verbs.channel);
  delete &id;
}

}  // namespace roci::rdmacm

using namespace roci;          // NOLINT(google-build-using-namespace): this file defines the C API
using namespace roci::rdmacm;  // NOLINT(google-build-using-namespace): this file defines the C API

extern "C" {

int rdma_create_id(rdma_event_channel* channel, rdma_cm_id** out, void* context, rdma_port_space space) {
  if (!known_space(space)) return failed(EINVAL);
  if (device() == nullptr) return failed(ENODEV);
  rdma_event_channel* const own = channel == nullptr ? rdma_create_event_channel() : nullptr;
  if (channel == nullptr && own == nullptr) return -1;
  auto* id = new Id;
  id->synchronous = own != nullptr;
  id->verbs.channel = own != nullptr ? own : channel;
  id->verbs.context = context;
  id->verbs.ps = space;
  id->verbs.qp_type = space == RDMA_PS_TCP || space == RDMA_PS_IB ? IBV_QPT_RC : IBV_QPT_UD;
  *out = &id->verbs;
  return 0;
}

int rdma_destroy_id(rdma_cm_id* id) {
  destroy(Id::of(id));
  return 0;
}

int rdma_bind_addr(rdma_cm_id* id, sockaddr* address) { return rdmacm::bind(Id::of(id), address); }

int rdma_resolve_addr(rdma_cm_id* verbs, sockaddr* source, sockaddr* destination, int timeout_ms) {
  Id& id = Id::of(verbs);
  if (size_of(destination) == 0) return failed(EINVAL);
  if (id.phase == Phase::kIdle) {
    sockaddr_storage any{};
    any.ss_family = destination->sa_family;
    // As in rdma-core, a source of an unknown family is the wildcard address.
    const sockaddr* const from = size_of(source) != 0 ? source : reinterpret_cast<const sockaddr*>(&any);
    if (rdmacm::bind(id, from) != 0) return -1;
  }
  if (id.phase != Phase::kBound || id.uses_ib_addresses() != (destination->sa_family == AF_IB))
    return failed(EINVAL);
  const auto to = ip_of(*destination);
  if (!to) return failed(EINVAL);
  if (const auto bound = ip_of(id.verbs.route.addr.src_addr); !bound) {
    const auto from = source_for(device(), *to);
    if (!from) return failed(ENETUNREACH);
    use_source(id, *from);
    sockaddr_storage& bound_to = id.verbs.route.addr.src_storage;
    if (id.uses_ib_addresses()) {
      write_ib_address(from->address, id.service_id(), bound_to);
    } else {
      write_address(from->address, id.port, !to->is_v4(), bound_to);
    }
  } else if (bound->is_v4() != to->is_v4()) {
    return failed(EINVAL);
  }
  std::memcpy(&id.verbs.route.addr.dst_storage, destination, size_of(destination));
  id.verbs.route.addr.addr.ibaddr.dgid = gid_of(*to);
  id.phase = Phase::kAddressRequested;
  id.service->resolve(id, *to, std::max(timeout_ms, 1) * kMillisecond);
  return complete(id);
}

int rdma_resolve_route(rdma_cm_id* verbs, int) {
  Id& id = Id::of(verbs);
  if (id.phase != Phase::kAddressResolved) return failed(EINVAL);
  set_path(id, path_mtu_of(id));
  id.phase = Phase::kRouteResolved;
  report(id, RDMA_CM_EVENT_ROUTE_RESOLVED);
  return complete(id);
}

int rdma_listen(rdma_cm_id* verbs, int backlog) {
  Id& id = Id::of(verbs);
  if (id.phase == Phase::kIdle) {
    sockaddr_in any{};
    any.sin_family = AF_INET;
    if (rdmacm::bind(id, reinterpret_cast<const sockaddr*>(&any)) != 0) return -1;
  }
  if (id.phase != Phase::kBound) return failed(EINVAL);
  id.listener.service = id.service_id();
  id.listener.address = ip_of(verbs->route.addr.src_addr).value_or(IpAddress{});
  if (id.one_family && !id.uses_ib_addresses()) {
    id.listener.ipv6 = verbs->route.addr.src_addr.sa_family == AF_INET6;
    id.listener.ipv4 = !id.listener.ipv6;
  }
  id.listener.handler = &requests();
  id.listener.user = &id;
  if (backlog > 0) id.listener.backlog = static_cast<uint32_t>(std::max(backlog, 8));
  if (roci::Status listens = id.service->listen(id.listener); !listens) return failed(listens.error());
  id.phase = Phase::kListening;
  return 0;
}

int rdma_migrate_id(rdma_cm_id* verbs, rdma_event_channel* channel) {
  Id& id = Id::of(verbs);
  rdma_event_channel* const own = channel == nullptr ? rdma_create_event_channel() : nullptr;
  if (channel == nullptr && own == nullptr) return -1;
  return move_to_channel(id, own != nullptr ? own : channel, own != nullptr);
}

__be16 rdma_get_src_port(rdma_cm_id* id) { return htons(port_of(id->route.addr.src_addr)); }
__be16 rdma_get_dst_port(rdma_cm_id* id) { return htons(port_of(id->route.addr.dst_addr)); }

ibv_context** rdma_get_devices(int* count) {
  ibv_context* const context = device();
  if (context == nullptr) {
    if (count != nullptr) *count = 0;
    errno = ENODEV;
    return nullptr;
  }
  if (count != nullptr) *count = 1;
  return new ibv_context* [2] { context, nullptr };
}

void rdma_free_devices(ibv_context** list) { delete[] list; }

int rdma_set_option(rdma_cm_id* verbs, int level, int option, void* value, size_t length) {
  Id& id = Id::of(verbs);
  if (level == RDMA_OPTION_IB) return failed(option == RDMA_OPTION_IB_PATH ? EOPNOTSUPP : ENOSYS);
  if (level != RDMA_OPTION_ID) return failed(ENOSYS);
  const auto number = [&]<class Value>(Value) { return *static_cast<const Value*>(value); };
  switch (option) {
    case RDMA_OPTION_ID_TOS:
      if (length != sizeof(uint8_t)) return failed(EINVAL);
      id.traffic_class = number(uint8_t{});
      return 0;
    case RDMA_OPTION_ID_REUSEADDR:
      if (length != sizeof(int)) return failed(EINVAL);
      id.reuse_address = number(int{}) != 0;
      return 0;
    case RDMA_OPTION_ID_AFONLY:
      if (length != sizeof(int)) return failed(EINVAL);
      id.one_family = number(int{}) != 0;
      return 0;
    case RDMA_OPTION_ID_ACK_TIMEOUT:
      if (length != sizeof(uint8_t) || number(uint8_t{}) > 31) return failed(EINVAL);
      id.ack_timeout = number(uint8_t{});
      return 0;
    default:
      return failed(ENOSYS);
  }
}

}  // extern "C"
