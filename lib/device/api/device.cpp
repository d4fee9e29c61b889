#include <algorithm>
#include <atomic>
#include <bit>
#include <climits>
#include <cstring>
#include <thread>
#include <utility>

#include "device/api/create_device.hpp"
#include "device/host/address.hpp"
#include "device/host/host.hpp"
#include "device/host/limits.hpp"
#include "port/dpdk/eal.hpp"
#include "port/dpdk/mbuf_pool.hpp"
#include "port/external_port.hpp"
#include "roci/device.hpp"

namespace roci {
namespace {

ibv_mtu mtu_code(uint32_t bytes) { return static_cast<ibv_mtu>(std::bit_width(bytes) - 8); }  // 256 bytes: 1

// InfiniBand representation of an Ethernet rate: number of lanes and rate per lane, both as codes of IBTA 14.2.5.6. As
// in the Linux kernel, the fastest one that the link reaches; for an unknown rate the slowest.
struct LinkSpeed {
  uint64_t gbps;
  uint8_t width;  // 1: one lane, 2: four
  uint8_t speed;  // 1: 2.5, 2: 5, 8: 10, 32: 25, 64: 50, 128: 100 Gb/s per lane
};
constexpr LinkSpeed kLinkSpeeds[] = {{400, 2, 128}, {200, 2, 64}, {100, 2, 32}, {40, 2, 8},
                                     {25, 1, 32},   {20, 2, 2},   {10, 1, 8},   {0, 1, 1}};

LinkSpeed link_speed(BitsPerSec rate) {
  for (const LinkSpeed& speed : kLinkSpeeds) {
    if (rate.value() >= speed.gbps * 1'000'000'000) return speed;
  }
  return kLinkSpeeds[std::size(kLinkSpeeds) - 1];
}

constexpr uint8_t kPhysDisabled = 3, kPhysLinkUp = 5;  // IBTA 14.2.5.6, PortPhysicalState

// Unique in the process, so that a queue pair rejects address handles of other devices too.
std::atomic<uint32_t> next_pd_number{1};

}  // namespace

Device::Device(std::shared_ptr<Host> host, std::shared_ptr<EventQueue> events)
    : host_(std::move(host)), events_(std::move(events)) {}
Device::~Device() = default;

struct DeviceCreation {
  static std::unique_ptr<Device> create(std::shared_ptr<Host> host) {
    std::shared_ptr<EventQueue> events = host->events().first();
    return std::unique_ptr<Device>(new Device(std::move(host), std::move(events)));
  }
};

Result<std::unique_ptr<Device>> create_device(std::unique_ptr<Port> port, const DeviceConfig& config,
                                              std::shared_ptr<MbufPool> buffers) {
  auto host = Host::create(std::move(port), config, std::move(buffers));
  if (!host) return fail(host.error());
  return DeviceCreation::create(std::move(*host));
}

Result<std::unique_ptr<Device>> Device::create(std::unique_ptr<ExternalPort> port,
                                               const DeviceConfig& config) {
  if (port == nullptr) return fail("device " + config.name + ": a port is required");
  // Device::poller() polls the workers only, so nothing would poll the control cores.
  if (config.progress == Progress::kExternal && config.congestion_control.cores > 0)
    return fail("device " + config.name +
                    ": congestion control: " + std::to_string(config.congestion_control.cores) +
                    " cores are not possible with Progress::kExternal; only 0 is allowed",
                EOPNOTSUPP);
  ROCI_TRY(require_eal());
  auto adapted = adapt_port(std::move(port), config.name);
  if (!adapted) return fail(adapted.error());
  return create_device(std::move(*adapted), config);
}

Result<std::unique_ptr<Device>> Device::share() const {
  auto events = host_->events().add_user();
  if (!events) return fail(events.error().within("device " + name()));
  return std::unique_ptr<Device>(new Device(host_, std::move(*events)));
}

const std::string& Device::name() const { return host_->config().name; }

ibv_device_attr Device::query_device() const {
  ibv_device_attr attr{};
  std::strncpy(attr.fw_ver, "roci", sizeof attr.fw_ver - 1);
  const MacAddress mac = host_->port().mac();
  const Gid link_local = IpAddress::link_local(mac);
  std::memcpy(&attr.node_guid, link_local.bytes.data() + 8, sizeof attr.node_guid);
  attr.sys_image_guid = attr.node_guid;
  attr.max_mr_size = UINT64_MAX;
  attr.page_size_cap = 0xfffff000;
  attr.max_qp = static_cast<int>(host_->config().max_qp);
  attr.max_qp_wr = kMaxWorkRequests;
  attr.max_raw_ethy_qp = attr.max_qp;
  attr.max_sge = kMaxSge;
  attr.max_sge_rd = kMaxSge;
  attr.max_cq = static_cast<int>(host_->config().max_cq);
  attr.max_cqe = kMaxCqEntries;
  attr.max_mr = static_cast<int>(host_->config().max_mr);
  attr.max_mw = static_cast<int>(host_->config().max_mr);
  attr.device_cap_flags = IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2B |
                          IBV_DEVICE_MEM_MGT_EXTENSIONS | IBV_DEVICE_RC_RNR_NAK_GEN |
                          IBV_DEVICE_CURR_QP_STATE_MOD | IBV_DEVICE_SYS_IMAGE_GUID | IBV_DEVICE_SRQ_RESIZE |
                          IBV_DEVICE_PORT_ACTIVE_EVENT | IBV_DEVICE_BAD_PKEY_CNTR | IBV_DEVICE_BAD_QKEY_CNTR |
                          IBV_DEVICE_XRC | IBV_DEVICE_MANAGED_FLOW_STEERING;
  attr.max_pd = static_cast<int>(host_->config().max_pd);
  attr.max_qp_rd_atom = kMaxReads;
  attr.max_qp_init_rd_atom = kMaxReads;
  attr.max_res_rd_atom =
      static_cast<int>(std::min<uint64_t>(uint64_t{kMaxReads} * host_->config().max_qp, INT_MAX));
  attr.atomic_cap = IBV_ATOMIC_GLOB;  // uses the CPU's atomic instructions
  attr.max_pkeys = 1;
  attr.max_ah = static_cast<int>(host_->config().max_ah);
  attr.max_srq = static_cast<int>(host_->config().max_srq);
  attr.max_srq_wr = kMaxWorkRequests;
  attr.max_srq_sge = kMaxSge;
  attr.max_mcast_grp = MulticastTable::kMaxGroups;
  attr.max_mcast_qp_attach = MulticastTable::kMaxMembers;
  attr.max_total_mcast_qp_attach = MulticastTable::kMaxGroups * MulticastTable::kMaxMembers;
  attr.phys_port_cnt = 1;
  return attr;
}

ibv_port_attr Device::query_port() const {
  ibv_port_attr attr{};
  const bool up = host_->port().link_up();
  attr.state = up ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;
  attr.phys_state = up ? kPhysLinkUp : kPhysDisabled;
  attr.max_mtu = IBV_MTU_4096;
  bool has_v4 = false;
  for (const Gid& gid : host_->gids()) has_v4 = has_v4 || gid.is_v4();
  attr.active_mtu = mtu_code(host_->largest_path_mtu(!has_v4));
  attr.gid_tbl_len = static_cast<int>(host_->gids().size());
  attr.max_msg_sz = 1U << 31;
  attr.pkey_tbl_len = 1;
  attr.link_layer = IBV_LINK_LAYER_ETHERNET;
  attr.port_cap_flags = IBV_PORT_IP_BASED_GIDS;
  attr.flags = IBV_QPF_GRH_REQUIRED;
  attr.max_vl_num = 1;
  const LinkSpeed speed = link_speed(host_->port().capabilities().link_rate);
  attr.active_width = speed.width;
  attr.active_speed = speed.speed;
  attr.bad_pkey_cntr = static_cast<uint32_t>(host_->counter(Counter::kRxWrongPkey));
  attr.qkey_viol_cntr = static_cast<uint32_t>(host_->counter(Counter::kRxWrongQkey));
  return attr;
}

Result<ibv_gid> Device::query_gid(int index) const {
  if (index < 0 || index >= gid_count()) {
    return fail("device " + name() + ": no GID " + std::to_string(index) + "; 0 to " +
                std::to_string(gid_count() - 1) + " exist");
  }
  return to_ibv(host_->gids()[static_cast<size_t>(index)]);
}

Result<uint16_t> Device::query_pkey(int index) const {
  if (index == 0) return kDefaultPKey.value();
  return fail("device " + name() + ": no P_Key " + std::to_string(index) + "; only 0 exists");
}

int Device::gid_count() const { return static_cast<int>(host_->gids().size()); }

Result<std::unique_ptr<ProtectionDomain>> Device::allocate_pd() {
  if (const Status counted = host_->take(LimitedObject::kProtectionDomain); !counted)
    return fail(counted.error());
  return std::unique_ptr<ProtectionDomain>(new ProtectionDomain(host_, events_, next_pd_number.fetch_add(1)));
}

Status Device::resolve(const ibv_gid& peer, std::chrono::nanoseconds timeout) {
  return host_->resolve(from_ibv(peer), timeout);
}

bool Device::progress() { return host_->application_drives() && host_->drive(); }

std::optional<AsyncEvent> Device::get_async_event() { return events_->take(); }
int Device::async_fd() const { return events_->fd(); }

Poller& Device::poller() { return *host_; }
Poller& Device::poller(uint32_t worker) { return host_->poller(worker); }

std::vector<std::pair<std::string, uint64_t>> Device::counters() const {
  std::vector<std::pair<std::string, uint64_t>> out;
  for (size_t i = 0; i < kCounterCount; ++i) {
    const auto counter = static_cast<Counter>(i);
    out.emplace_back(counter_name(counter), host_->counter(counter));
  }
  return out;
}

std::vector<CongestionFlowReport> Device::congestion_report() const {
  std::vector<CongestionFlowReport> flows;
  for (uint32_t i = 0; i < host_->workers(); ++i) {
    Worker& worker = host_->worker(i);
    const std::scoped_lock guard(worker.token());
    worker.for_each_queue_pair([&](AttachedQueuePair& qp) { CongestionControl::report(qp, flows); });
  }
  std::ranges::stable_sort(flows, {}, &CongestionFlowReport::qp_num);
  return flows;
}

ProtectionDomain::ProtectionDomain(std::shared_ptr<Host> host, std::shared_ptr<EventQueue> events,
                                   uint32_t number)
    : host_(std::move(host)), events_(std::move(events)), number_(number) {}
ProtectionDomain::~ProtectionDomain() { host_->release(LimitedObject::kProtectionDomain); }

}  // namespace roci
