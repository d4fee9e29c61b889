#include "rdmacm/fake_device.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "wire/headers/checksum.hpp"

namespace roci::rdmacm::fake {

struct Channel {
  ibv_comp_channel verbs{};  // first member
  std::deque<Queue*> events;
};

namespace {

Queue& queue_of(ibv_cq* queue) { return *reinterpret_cast<Queue*>(queue); }
QueuePair& pair_of(ibv_qp* pair) { return *reinterpret_cast<QueuePair*>(pair); }
Channel& channel_of(ibv_comp_channel* channel) { return *reinterpret_cast<Channel*>(channel); }

void require(bool holds) {
  if (!holds) std::abort();
}

void complete(ibv_cq* verbs, const ibv_wc& completion) {
  Queue& queue = queue_of(verbs);
  queue.completions.push_back(completion);
  if (!std::exchange(queue.armed, false)) return;
  queue.channel->events.push_back(&queue);
  const uint64_t one = 1;
  require(write(queue.channel->verbs.fd, &one, sizeof one) == sizeof one);
}

int poll_queue(ibv_cq* verbs, int count, ibv_wc* out) {
  Queue& queue = queue_of(verbs);
  int taken = 0;
  for (; taken < count && !queue.completions.empty(); ++taken) {
    out[taken] = queue.completions.front();
    queue.completions.pop_front();
  }
  return taken;
}

int request_notification(ibv_cq* verbs, int) {
  queue_of(verbs).armed = true;
  return 0;
}

int post_send(ibv_qp* verbs, ibv_send_wr* wr, ibv_send_wr** bad) {
  QueuePair& pair = pair_of(verbs);
  for (; wr != nullptr; wr = wr->next) {
    if (pair.pending.size() >= pair.max_send) {
      ++pair.refused;
      *bad = wr;
      return ENOMEM;
    }
    Sent sent{.wr_id = wr->wr_id, .opcode = wr->opcode};
    for (const ibv_sge& entry : std::span(wr->sg_list, static_cast<size_t>(wr->num_sge))) {
      const auto* const bytes = reinterpret_cast<const uint8_t*>(entry.addr);
      sent.content.insert(sent.content.end(), bytes, bytes + entry.length);
    }
    sent.length = static_cast<uint32_t>(sent.content.size());
    sent.immediate = std::bit_cast<Be32>(wr->imm_data).get();
    if (verbs->qp_type == IBV_QPT_UD) {
      sent.destination = reinterpret_cast<const AddressHandle*>(wr->wr.ud.ah)->destination;
      sent.destination_qpn = wr->wr.ud.remote_qpn;
    } else {
      sent.remote_address = wr->wr.rdma.remote_addr;
    }
    pair.pending.push_back(sent);
    pair.sent.push_back(std::move(sent));
  }
  return 0;
}

int post_receive(ibv_qp* verbs, ibv_recv_wr* wr, ibv_recv_wr** bad) {
  QueuePair& pair = pair_of(verbs);
  for (; wr != nullptr; wr = wr->next) {
    if (pair.receives.size() >= pair.max_receive) {
      ++pair.refused;
      *bad = wr;
      return ENOMEM;
    }
    pair.receives.push_back(*wr);
    pair.entries.push_back(wr->num_sge > 0 ? wr->sg_list[0] : ibv_sge{});
  }
  return 0;
}

ibv_device& listed() {
  static ibv_device device{};
  return device;
}

}  // namespace

bool QueuePair::receive_immediate(uint32_t immediate, uint32_t bytes) {
  if (receives.empty()) return false;
  ibv_wc completion{};
  completion.wr_id = receives.front().wr_id;
  completion.status = IBV_WC_SUCCESS;
  completion.opcode = IBV_WC_RECV_RDMA_WITH_IMM;
  completion.byte_len = bytes;
  completion.wc_flags = IBV_WC_WITH_IMM;
  completion.imm_data = std::bit_cast<uint32_t>(Be32{immediate});
  receives.pop_front();
  entries.pop_front();
  complete(verbs.recv_cq, completion);
  return true;
}

bool QueuePair::receive_datagram(std::span<const uint8_t, sockets::kNetworkHeader> header,
                                 std::span<const uint8_t> content, uint32_t source_qpn) {
  if (receives.empty()) return false;
  const ibv_sge entry = entries.front();
  require(entry.length >= header.size() + content.size());
  auto* const to = reinterpret_cast<uint8_t*>(entry.addr);
  std::ranges::copy(header, to);
  std::ranges::copy(content, to + header.size());
  ibv_wc completion{};
  completion.wr_id = receives.front().wr_id;
  completion.status = IBV_WC_SUCCESS;
  completion.opcode = IBV_WC_RECV;
  completion.byte_len = static_cast<uint32_t>(header.size() + content.size());
  completion.wc_flags = IBV_WC_GRH;
  completion.src_qp = source_qpn;
  receives.pop_front();
  entries.pop_front();
  complete(verbs.recv_cq, completion);
  return true;
}

void QueuePair::complete_sends(size_t most, ibv_wc_status status) {
  for (; most > 0 && !pending.empty(); --most) {
    ibv_wc completion{};
    completion.wr_id = pending.front().wr_id;
    completion.status = status;
    completion.opcode = IBV_WC_RDMA_WRITE;
    pending.pop_front();
    complete(verbs.send_cq, completion);
  }
}

Device::Device() {
  context.device = &listed();
  context.ops.poll_cq = poll_queue;
  context.ops.req_notify_cq = request_notification;
  context.ops.post_send = post_send;
  context.ops.post_recv = post_receive;
  context.num_comp_vectors = 1;
  pd.context = &context;
}

Device& Device::instance() {
  static auto* const kDevice = new Device;  // librdmacm uses the device until the process exits
  return *kDevice;
}

void Device::receive(const IpAddress& from, const CmMessage& message) {
  const auto mad = build_cm_mad({.transaction = 1, .modifier = 0, .message = message});
  agent_.on_mad({.local = kOwn, .remote = from}, mad, now);
}

void Device::pass(Nanos time) {
  const Nanos end = now + time;
  while (agent_.next_deadline() <= end) {
    now = std::max(now, agent_.next_deadline());
    agent_.poll(now);
  }
  now = end;
}

bool Device::send(const cm::Route& route, std::span<const uint8_t, kMadBytes> mad, Nanos) {
  const ParsedCm parsed = parse_cm_mad(mad);
  require(parsed.outcome == CmOutcome::kAccepted);
  messages.push_back({route, parsed.mad});
  return true;
}

Status Device::connect(const cm::Route& route, const CmRequest& request, uint32_t options,
                       cm::EventHandler& handler, cm::Connection*& made_connection) {
  const auto started = agent_.connect(route, request, options, handler, now);
  if (!started) return fail(started.error());
  made_connection = *started;
  return {};
}

Status Device::request_service(const cm::Route& route, const CmServiceRequest& request,
                               cm::EventHandler& handler, cm::Connection*& made_connection) {
  const auto requested = agent_.request_service(
      route, request, cm::kPacketLifetime, timeouts().response_timeout, timeouts().retries, handler, now);
  if (!requested) return fail(requested.error());
  made_connection = *requested;
  return {};
}

std::array<uint8_t, sockets::kNetworkHeader> network_header(const IpAddress& source,
                                                            const IpAddress& destination) {
  std::array<uint8_t, sockets::kNetworkHeader> out{};
  if (!source.is_v4()) {
    out[0] = 0x60;
    out[6] = 17;  // UDP
    std::ranges::copy(source.bytes, out.begin() + 8);
    std::ranges::copy(destination.bytes, out.begin() + 24);
    return out;
  }
  out[20] = 0x45;
  out[28] = 64;
  out[29] = 17;
  std::copy_n(source.bytes.begin() + 12, 4, out.begin() + 32);
  std::copy_n(destination.bytes.begin() + 12, 4, out.begin() + 36);
  const uint16_t sum = inet_checksum(&out[20], 20);
  std::memcpy(&out[30], &sum, sizeof sum);
  return out;
}

CmRequest request_of(const StreamRequest& wanted) {
  CmRequest out{.local_id = wanted.id, .service_id = cm_service_id(CmPortSpace::kTcp, wanted.port)};
  out.queue_pair = Qpn{wanted.qpn};
  out.local_response_timeout = out.remote_response_timeout = 20;
  out.max_cm_retries = 15;
  out.path_mtu = IBV_MTU_1024;
  out.primary.ack_timeout = 17;
  write_cm_ip_header({.source_port = 40000, .source = wanted.from, .destination = kOwn}, out.private_data);
  const sockets::WireConnectionData data =
      sockets::to_wire({.credits = wanted.credits,
                        .mappings = wanted.mappings,
                        .grants = {.address = 0x10000, .key = 1, .length = sockets::kGrants},
                        .ring = {.address = 0x20000, .key = 2, .length = wanted.ring}});
  std::memcpy(&out.private_data[CmIpHeader::kBytes], &data, sizeof data);
  return out;
}

}  // namespace roci::rdmacm::fake

using namespace roci::rdmacm;  // NOLINT(google-build-using-namespace): this file defines the C API
using fake::Device;

extern "C" {

roci::cm::Service* roci_cm_service(ibv_context*) { return &Device::instance(); }

ibv_device**(ibv_get_device_list)(int* count) {
  *count = 1;
  return new ibv_device* [2] { &fake::listed(), nullptr };
}
void ibv_free_device_list(ibv_device** list) { delete[] list; }
ibv_context* ibv_open_device(ibv_device*) { return &Device::instance().context; }
ibv_pd* ibv_alloc_pd(ibv_context*) { return &Device::instance().pd; }

int ibv_query_device(ibv_context*, ibv_device_attr* out) {
  *out = {};
  out->max_qp_wr = 32768;
  out->max_qp_rd_atom = out->max_qp_init_rd_atom = 16;
  return 0;
}
int(ibv_query_port)(ibv_context*, uint8_t, _compat_ibv_port_attr* out) {
  reinterpret_cast<ibv_port_attr*>(out)->active_mtu = IBV_MTU_4096;
  return 0;
}
int ibv_query_gid(ibv_context*, uint8_t, int index, ibv_gid* out) {
  if (index != 0) return -1;
  std::memcpy(out->raw, fake::kOwn.bytes.data(), sizeof out->raw);
  return 0;
}

ibv_comp_channel* ibv_create_comp_channel(ibv_context* context) {
  auto* const channel = new fake::Channel;
  channel->verbs.context = context;
  channel->verbs.fd = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);
  ++Device::instance().channels;
  return &channel->verbs;
}
int ibv_destroy_comp_channel(ibv_comp_channel* verbs) {
  close(verbs->fd);
  delete &fake::channel_of(verbs);
  --Device::instance().channels;
  return 0;
}
int ibv_get_cq_event(ibv_comp_channel* verbs, ibv_cq** queue, void** context) {
  fake::Channel& channel = fake::channel_of(verbs);
  if (channel.events.empty()) return -1;
  uint64_t one = 0;
  fake::require(read(verbs->fd, &one, sizeof one) == sizeof one);
  *queue = &channel.events.front()->verbs;
  *context = nullptr;
  channel.events.pop_front();
  return 0;
}
void ibv_ack_cq_events(ibv_cq*, unsigned) {}

ibv_cq* ibv_create_cq(ibv_context* context, int entries, void*, ibv_comp_channel* channel, int) {
  auto* const queue = new fake::Queue;
  queue->verbs.context = context;
  queue->verbs.cqe = entries;
  queue->channel = reinterpret_cast<fake::Channel*>(channel);
  Device::instance().queues.insert(queue);
  return &queue->verbs;
}
int ibv_destroy_cq(ibv_cq* verbs) {
  fake::Queue* const queue = &fake::queue_of(verbs);
  std::erase(queue->channel->events, queue);
  Device::instance().queues.erase(queue);
  delete queue;
  return 0;
}

ibv_qp* ibv_create_qp(ibv_pd* pd, ibv_qp_init_attr* attr) {
  Device& device = Device::instance();
  auto* const pair = new fake::QueuePair;
  pair->verbs.context = pd->context;
  pair->verbs.pd = pd;
  pair->verbs.send_cq = attr->send_cq;
  pair->verbs.recv_cq = attr->recv_cq;
  pair->verbs.qp_type = attr->qp_type;
  pair->verbs.qp_num = device.next_number++;
  pair->max_send = attr->cap.max_send_wr;
  pair->max_receive = attr->cap.max_recv_wr;
  device.queue_pairs.insert(pair);
  device.made.push_back(pair);
  return &pair->verbs;
}
int ibv_modify_qp(ibv_qp* pair, ibv_qp_attr* attr, int mask) {
  if ((mask & IBV_QP_STATE) != 0) pair->state = attr->qp_state;
  return 0;
}
int ibv_destroy_qp(ibv_qp* verbs) {
  Device::instance().queue_pairs.erase(&fake::pair_of(verbs));
  delete &fake::pair_of(verbs);
  return 0;
}

ibv_mr*(ibv_reg_mr)(ibv_pd* pd, void* address, size_t length, int) {
  Device& device = Device::instance();
  auto* const region = new ibv_mr{};
  region->context = pd->context;
  region->pd = pd;
  region->addr = address;
  region->length = length;
  region->lkey = region->rkey = device.next_number++;
  device.regions.insert(region);
  return region;
}
ibv_mr* ibv_reg_mr_iova2(ibv_pd* pd, void* address, size_t length, uint64_t, unsigned access) {
  return (ibv_reg_mr)(pd, address, length, static_cast<int>(access));
}
int ibv_dereg_mr(ibv_mr* region) {
  Device::instance().regions.erase(region);
  delete region;
  return 0;
}

ibv_ah* ibv_create_ah(ibv_pd* pd, ibv_ah_attr* attr) {
  auto* const handle = new fake::AddressHandle;
  handle->verbs.context = pd->context;
  std::memcpy(handle->destination.bytes.data(), attr->grh.dgid.raw, sizeof attr->grh.dgid.raw);
  Device::instance().address_handles.insert(handle);
  return &handle->verbs;
}
ibv_ah* ibv_create_ah_from_wc(ibv_pd* pd, ibv_wc*, ibv_grh* header, uint8_t) {
  const auto* const bytes = reinterpret_cast<const uint8_t*>(header);
  const std::span<const uint8_t, sockets::kNetworkHeader> whole(bytes, sockets::kNetworkHeader);
  auto route = sockets::read_datagram_route(whole, true);
  if (!route) route = sockets::read_datagram_route(whole, false);
  fake::require(route.has_value());
  ibv_ah_attr attr{};
  std::memcpy(attr.grh.dgid.raw, route->source.bytes.data(), sizeof attr.grh.dgid.raw);
  return ibv_create_ah(pd, &attr);
}
int ibv_destroy_ah(ibv_ah* verbs) {
  auto* const handle = reinterpret_cast<fake::AddressHandle*>(verbs);
  Device::instance().address_handles.erase(handle);
  delete handle;
  return 0;
}

// Not used by sockets.
ibv_srq* ibv_create_srq(ibv_pd*, ibv_srq_init_attr*) { return nullptr; }
int ibv_destroy_srq(ibv_srq*) { return EINVAL; }
int ibv_attach_mcast(ibv_qp*, const ibv_gid*, uint16_t) { return EINVAL; }
int ibv_detach_mcast(ibv_qp*, const ibv_gid*, uint16_t) { return EINVAL; }

}  // extern "C"
