#include "transport/queue_pair/queue_pair_core.hpp"

#include <bit>
#include <cstring>
#include <mutex>

#include "base/trace_points.hpp"
#include "memory/flush_verbs.hpp"
#include "transport/address_path.hpp"
#include "transport/messages/datagram.hpp"
#include "transport/messages/local_operations.hpp"

namespace roci {
namespace {

ibv_wc_opcode completion_opcode(ibv_wr_opcode opcode) {
  switch (opcode) {
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
      return IBV_WC_RDMA_WRITE;
    case IBV_WR_RDMA_READ:
      return IBV_WC_RDMA_READ;
    case IBV_WR_ATOMIC_CMP_AND_SWP:
      return IBV_WC_COMP_SWAP;
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
      return IBV_WC_FETCH_ADD;
    case IBV_WR_ATOMIC_WRITE:
      return IBV_WC_ATOMIC_WRITE;
    case IBV_WR_BIND_MW:
      return IBV_WC_BIND_MW;
    case IBV_WR_LOCAL_INV:
      return IBV_WC_LOCAL_INV;
    default:
      return opcode == kWrFlush ? kWcFlush : IBV_WC_SEND;
  }
}

// Excludes IBV_SEND_IP_CSUM, which only devices with that capability accept.
constexpr unsigned kSendFlags = IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED | IBV_SEND_INLINE;

bool is_atomic(ibv_wr_opcode opcode) {
  return opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

bool has_8_bytes(ibv_wr_opcode opcode) { return is_atomic(opcode) || opcode == IBV_WR_ATOMIC_WRITE; }

// Whether a work request uses ibv_send_wr.wr.atomic. A flush has the bytes of its range in compare_add.
bool has_atomic_fields(ibv_wr_opcode opcode) {
  constexpr unsigned kWithFields =
      1U << IBV_WR_ATOMIC_CMP_AND_SWP | 1U << IBV_WR_ATOMIC_FETCH_AND_ADD | 1U << kWrFlush;
  return (kWithFields >> opcode & 1U) != 0;
}

// Whether a service supports a work request (IBTA 9.1, table 36; annex A19). Others are rejected as invalid.
bool service_has(ibv_qp_type service, ibv_wr_opcode opcode) {
  if (service == IBV_QPT_XRC_RECV) return false;  // it sends no requests
  switch (opcode) {
    case IBV_WR_SEND:
      return true;
    case IBV_WR_SEND_WITH_IMM:
      return service != IBV_QPT_RAW_PACKET;
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
    case IBV_WR_BIND_MW:
    case IBV_WR_LOCAL_INV:
      return is_connected(service);
    case IBV_WR_ATOMIC_WRITE:
      return service == IBV_QPT_RC;
    default:
      return service == IBV_QPT_RC || (service == IBV_QPT_XRC_SEND && opcode != kWrFlush);
  }
}

TransportClass service_of(ibv_qp_type type) {
  switch (type) {
    case IBV_QPT_UC:
      return TransportClass::kUc;
    case IBV_QPT_UD:
    case IBV_QPT_RAW_PACKET:  // sends no RoCEv2 packets
      return TransportClass::kUd;
    case IBV_QPT_XRC_SEND:
    case IBV_QPT_XRC_RECV:
      return TransportClass::kXrc;
    default:
      return TransportClass::kRc;
  }
}

constexpr uint32_t kAtomicWriteBytes = 8;

uint32_t send_trailer(const QueuePairConfig& config) {
  return std::max({config.max_send_sge * static_cast<uint32_t>(sizeof(ibv_sge)), uint32_t{config.max_inline},
                   kAtomicWriteBytes});
}

uint32_t send_capacity(const QueuePairConfig& config) { return std::bit_ceil(config.max_send_wr); }

size_t send_bytes(const QueuePairConfig& config) {
  return WorkRing<SendWqe>::bytes(send_capacity(config), send_trailer(config));
}

uint32_t recv_capacity(const QueuePairConfig& config) {
  return config.srq != nullptr ? 1 : std::bit_ceil(config.max_recv_wr);
}

uint32_t recv_trailer(const QueuePairConfig& config) {
  const uint32_t pieces = config.srq != nullptr ? config.srq->max_sge() : config.max_recv_sge;
  return pieces * static_cast<uint32_t>(sizeof(ibv_sge));
}

size_t recv_bytes(const QueuePairConfig& config) {
  return WorkRing<RecvWqe>::bytes(recv_capacity(config), recv_trailer(config));
}

}  // namespace

QueuePairCore::QueuePairCore(SparseArena& arena, const QueuePairConfig& c, CompletionRing& send_completions,
                             CompletionRing& recv_completions)
    : config(c),
      send_queue(send_capacity(c), send_trailer(c), arena.take(send_bytes(c)), send_done_),
      recv_queue(recv_capacity(c), recv_trailer(c), arena.take(recv_bytes(c)), recv_done_),
      send_cq(send_completions),
      recv_cq(&recv_completions),
      service(service_of(c.type)) {}

QueuePairCore::~QueuePairCore() {
  if (send_queue.storage() != nullptr) SparseArena::give_back(send_queue.storage(), send_bytes(config));
  if (recv_queue.storage() != nullptr) SparseArena::give_back(recv_queue.storage(), recv_bytes(config));
}

namespace {

// The upper 8 bits have no meaning.
Qpn qpn_of(const ibv_send_wr& datagram) { return Qpn{datagram.wr.ud.remote_qpn & 0xffffff}; }

}  // namespace

// 0, or the errno with which the request is rejected.
int QueuePairCore::check_send(const ibv_send_wr& wr, uint64_t* length) const {
  switch (wr.opcode) {
    case IBV_WR_SEND:
    case IBV_WR_SEND_WITH_IMM:
    case IBV_WR_SEND_WITH_INV:
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
    case IBV_WR_RDMA_READ:
    case IBV_WR_ATOMIC_CMP_AND_SWP:
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
    case IBV_WR_ATOMIC_WRITE:
      break;
    case IBV_WR_BIND_MW:
      if (wr.bind_mw.mw == nullptr) return EINVAL;
      [[fallthrough]];
    case IBV_WR_LOCAL_INV:
      *length = 0;
      return service_has(config.type, wr.opcode) ? 0 : EINVAL;
    default:
      if (wr.opcode != kWrFlush) return EOPNOTSUPP;
      if (wr.num_sge != 0 || (wr.send_flags & IBV_SEND_INLINE) != 0 || wr.wr.atomic.compare_add > kMaxMessage)
        return EINVAL;
  }
  if (config.type == IBV_QPT_XRC_RECV) return EINVAL;  // has no send queue
  if ((wr.send_flags & ~kSendFlags) != 0) return EINVAL;
  if (wr.num_sge < 0 || static_cast<uint32_t>(wr.num_sge) > config.max_send_sge) return EINVAL;
  *length = 0;
  for (int i = 0; i < wr.num_sge; ++i) *length += wr.sg_list[i].length;
  if (*length > kMaxMessage) return EINVAL;
  if ((wr.send_flags & IBV_SEND_INLINE) != 0 &&
      (*length > (wr.opcode == IBV_WR_ATOMIC_WRITE ? kAtomicWriteBytes : config.max_inline) ||
       is_atomic(wr.opcode) || wr.opcode == IBV_WR_RDMA_READ)) {
    return EINVAL;
  }
  return config.type == IBV_QPT_UD && service_has(IBV_QPT_UD, wr.opcode) ? check_datagram(wr) : 0;
}

// The error with which a request that was accepted completes when its turn comes, as with Linux's soft-RoCE and NICs.
ibv_wc_status QueuePairCore::local_error_of(const ibv_send_wr& wr, uint64_t length) const {
  if (!service_has(config.type, wr.opcode)) return IBV_WC_LOC_QP_OP_ERR;
  if (has_8_bytes(wr.opcode)) return length == sizeof(uint64_t) ? IBV_WC_SUCCESS : IBV_WC_LOC_LEN_ERR;
  return is_connected(config.type) || fits_a_packet(wr, length) ? IBV_WC_SUCCESS : IBV_WC_LOC_LEN_ERR;
}

// For services without messages of several packets. A raw frame has an Ethernet header, and at most one VLAN tag beyond
// the port's MTU.
bool QueuePairCore::fits_a_packet(const ibv_send_wr& wr, uint64_t length) const {
  if (config.type == IBV_QPT_UD) return length <= static_cast<const AddressPath*>(wr.wr.ud.ah)->max_payload;
  return length >= sizeof(EthernetHeader) &&
         length <= attributes.path_mtu + sizeof(EthernetHeader) + sizeof(VlanHeader);
}

// The address handle of a datagram belongs to the queue pair's protection domain (IBTA 10.2.3).
int QueuePairCore::check_datagram(const ibv_send_wr& wr) const {
  if (wr.wr.ud.ah == nullptr) return EINVAL;
  const auto& address = *static_cast<const AddressPath*>(wr.wr.ud.ah);
  // Receivers drop a multicast packet with another queue pair number, and the reverse (IBTA 9.6.1.1.3).
  if (address.path.destination_ip.is_multicast() != (qpn_of(wr) == kMulticastQp)) return EINVAL;
  return address.pd == config.pd ? 0 : EINVAL;
}

// Whether the whole list can be posted: 0, or the errno with which it is rejected.
int QueuePairCore::check_list(const ibv_send_wr* list) {
  uint32_t count = 0;
  for (const ibv_send_wr* wr = list; wr != nullptr; wr = wr->next, ++count) {
    uint64_t length = 0;
    if (const int code = check_send(*wr, &length); code != 0) return code;
  }
  return count > send_queue.free_slots() ? ENOMEM : 0;
}

int QueuePairCore::post_send(ibv_send_wr* list, ibv_send_wr** bad, Posting posting) {
  const std::scoped_lock guard(send_queue.lock);
  if (posting == Posting::kAllOrNothing) {
    if (const int code = check_list(list); code != 0) return code;
  }
  const auto refuse = [&](ibv_send_wr* wr, int code) {
    if (bad != nullptr) *bad = wr;
    return code;
  };
  const ibv_qp_state now = state();
  if (now == IBV_QPS_RESET || now == IBV_QPS_INIT || now == IBV_QPS_RTR) return refuse(list, EINVAL);
  for (ibv_send_wr* wr = list; wr != nullptr; wr = wr->next) {
    uint64_t length = 0;
    if (const int code = check_send(*wr, &length); code != 0) return refuse(wr, code);
    if (send_queue.full()) return refuse(wr, ENOMEM);
    SendWqe& wqe = send_queue.next_free();
    wqe.wr_id = wr->wr_id;
    wqe.opcode = wr->opcode;
    wqe.send_flags = wr->send_flags | (config.signal_all ? static_cast<unsigned>(IBV_SEND_SIGNALED) : 0U);
    wqe.length = static_cast<uint32_t>(length);
    wqe.immediate = wr->imm_data;
    if (wqe.is_local()) {
      take_local_operation(wqe, *wr);
      trace::send_posted(config.number.value(), wr->wr_id, wr->opcode, static_cast<uint32_t>(length));
      send_queue.publish();
      continue;
    }
    if (config.type == IBV_QPT_XRC_SEND) [[unlikely]]
      wqe.remote_srq = Srqn{wr->qp_type.xrc.remote_srqn};
    wqe.local_error = local_error_of(*wr, length);
    if (config.type == IBV_QPT_UD &&
        wqe.local_error != IBV_WC_LOC_QP_OP_ERR) {  // else without an address handle
      wqe.address = static_cast<AddressPath*>(wr->wr.ud.ah);
      wqe.address->uses.fetch_add(1, std::memory_order_relaxed);
      wqe.remote_qp = qpn_of(*wr);
      wqe.qkey = QKey{wr->wr.ud.remote_qkey};
    } else if (has_atomic_fields(wr->opcode)) {
      wqe.remote_address = wr->wr.atomic.remote_addr;
      wqe.rkey = wr->wr.atomic.rkey;
      wqe.compare_add = wr->wr.atomic.compare_add;
      wqe.swap = wr->wr.atomic.swap;
    } else {
      wqe.remote_address = wr->wr.rdma.remote_addr;
      wqe.rkey = wr->wr.rdma.rkey;
    }
    if (wqe.is_inline()) {
      auto* to = const_cast<uint8_t*>(wqe.inline_data());
      for (int i = 0; i < wr->num_sge; ++i) {
        std::memcpy(to, reinterpret_cast<const void*>(wr->sg_list[i].addr), wr->sg_list[i].length);
        to += wr->sg_list[i].length;
      }
    } else {
      wqe.sge_count = static_cast<uint16_t>(wr->num_sge);
      if (wr->num_sge > 0) {
        std::memcpy(const_cast<ibv_sge*>(wqe.sges()), wr->sg_list, sizeof(ibv_sge) * wqe.sge_count);
      }
    }
    trace::send_posted(config.number.value(), wr->wr_id, wr->opcode, static_cast<uint32_t>(length));
    send_queue.publish();
  }
  return 0;
}

int QueuePairCore::post_recv(ibv_recv_wr* list, ibv_recv_wr** bad) {
  const std::scoped_lock guard(recv_queue.lock);
  const auto refuse = [&](ibv_recv_wr* wr, int code) {
    if (bad != nullptr) *bad = wr;
    return code;
  };
  if (state() == IBV_QPS_RESET || config.max_recv_wr == 0) return refuse(list, EINVAL);
  for (ibv_recv_wr* wr = list; wr != nullptr; wr = wr->next) {
    if (recv_queue.full()) return refuse(wr, ENOMEM);
    RecvWqe& wqe = recv_queue.next_free();
    if (!wqe.fill(*wr, config.max_recv_sge)) return refuse(wr, EINVAL);
    trace::recv_posted(config.number.value(), wqe.wr_id, wqe.capacity);
    // Sequentially consistent: ordered before the caller's load of the state. See set_state().
    recv_queue.publish(std::memory_order_seq_cst);
  }
  return 0;
}

bool QueuePairCore::take_shared_receive(TransportContext& context) {
  if (config.srq == nullptr) return false;
  switch (config.srq->take(recv_queue.next_free())) {
    case SharedReceiveRing::Taken::kNothing:
      return false;
    case SharedReceiveRing::Taken::kRequestAtLimit:
      context.raise(IBV_EVENT_SRQ_LIMIT_REACHED, config.srq->object());
      break;
    case SharedReceiveRing::Taken::kRequest:
      break;
  }
  recv_queue.publish();
  return true;
}

bool QueuePairCore::is_from_peer(TransportContext& context, const FrameView& view,
                                 TransportClass transport) const {
  if (view.opcode->transport != transport && view.opcode->transport != TransportClass::kCnp) {
    context.counters.add(Counter::kRxWrongTransport);
    return false;
  }
  if (((view.bth().pkey.get() ^ attributes.pkey.value()) & 0x7fff) != 0) {
    context.counters.add(Counter::kRxWrongPkey);
    return false;
  }
  if (!view.is_between(attributes.path.destination_ip, attributes.path.source_ip)) {
    context.counters.add(Counter::kRxWrongSource);
    return false;
  }
  return true;
}

void QueuePairCore::note_communication(TransportContext& context) {
  if (established_ || state() != IBV_QPS_RTR) return;
  established_ = true;
  raise(context, IBV_EVENT_COMM_EST);
}

void QueuePairCore::to_ready_to_receive(Psn expected) {
  session.reset();
  reset_responder(expected);
  path_ready_ = established_ = fatal_raised_ = false;
  set_state(IBV_QPS_RTR);
}

void QueuePairCore::to_ready_to_send(Psn first) {
  reset_requester(first);
  set_state(IBV_QPS_RTS);
}

void QueuePairCore::drain_sends(bool notify, EventSink& events, Counters& counters) {
  draining_ = is_sending();
  notify_drained_ = notify;
  set_state(IBV_QPS_SQD);
  if (draining_ || !notify) return;
  if (!events.raise({IBV_EVENT_SQ_DRAINED, object()})) counters.add(Counter::kEventsLost);
}

void QueuePairCore::on_drained(TransportContext& context) {
  if (!draining()) return;
  draining_ = false;
  if (notify_drained_) raise(context, IBV_EVENT_SQ_DRAINED);
}

void QueuePairCore::to_reset() {
  set_state(IBV_QPS_RESET);
  session.reset();
  const std::scoped_lock guard(send_queue.lock, recv_queue.lock);
  for (; !send_queue.empty(); send_queue.pop()) release_address(send_queue.at(send_queue.head()));
  recv_queue.clear();
  reset_requester(Psn{0});
  reset_responder(Psn{0});
  path_ready_ = last_receive_raised_ = false;
  send_cq.remove(config.number.value());
  if (recv_cq != &send_cq) recv_cq->remove(config.number.value());
}

void QueuePairCore::release_address(const SendWqe& request) {
  if (request.address != nullptr) request.address->uses.fetch_sub(1, std::memory_order_release);
}

void QueuePairCore::stop_sending(TransportContext& context, ibv_wc_status status) {
  if (state() != IBV_QPS_ERR) set_state(IBV_QPS_SQE);  // before the completion is visible
  const SendWqe& oldest = send_queue.at(send_queue.head());
  release_address(oldest);
  complete_send(context, oldest, status);
  flush_sends(context);
}

void QueuePairCore::flush_sends(TransportContext& context) {
  while (!send_queue.empty()) {
    const SendWqe& oldest = send_queue.at(send_queue.head());
    release_address(oldest);
    complete_send(context, oldest, IBV_WC_WR_FLUSH_ERR);
  }
}

bool QueuePairCore::begin_single_packets(TransportContext& context) {
  if (state() == IBV_QPS_ERR) {
    set_state(IBV_QPS_ERR, std::memory_order_seq_cst);
    flush_sends(context);
    flush_receives(context);
    return false;
  }
  if (state() == IBV_QPS_SQE) flush_sends(context);
  on_drained(context);  // between calls, no packet is in flight
  return true;
}

RocePath QueuePairCore::sent_path() const {
  RocePath path = attributes.path;
  if (gates == nullptr) return path;
  if (gates->dscp >= 0)
    path.traffic_class = static_cast<uint8_t>(gates->dscp << 2 | (path.traffic_class & 3));
  if (gates->decides_ecn) path.traffic_class &= 0xfc;
  return path;
}

void QueuePairCore::set_peer_mac(const MacAddress& mac) {
  attributes.path.destination_mac = mac;
  writer = RoceWriter(sent_path(), config.contents);
  path_ready_ = true;
}

void QueuePairCore::take_cnp(TransportContext& context) {
  trace::cnp_received(config.number.value());
  context.counters.add(Counter::kRxCnp);
  const bool handled = gates != nullptr && !(session != nullptr && session->terms.ignore_cnps);
  context.counters.add(handled ? Counter::kRpCnpsHandled : Counter::kRpCnpsIgnored);
  if (handled) ++gates->cnps;
}

void QueuePairCore::complete_send(TransportContext& context, const SendWqe& oldest, ibv_wc_status status) {
  trace::request_completed(config.number.value(), oldest.wr_id, status);
  if (status == IBV_WC_SUCCESS && (oldest.send_flags & IBV_SEND_SIGNALED) == 0) {
    send_queue.pop();
    return;
  }
  ibv_wc wc{};
  wc.wr_id = oldest.wr_id;
  wc.status = status;
  wc.opcode = completion_opcode(oldest.opcode);
  wc.byte_len = oldest.length;
  wc.qp_num = config.number.value();
  send_queue.pop();
  if (!send_cq.push(wc, false, context.completions, context.now)) on_overflow(context, send_cq);
}

void QueuePairCore::complete_recv(TransportContext& context, ibv_wc& wc, bool solicited) {
  wc.wr_id = recv_queue.at(recv_queue.head()).wr_id;
  wc.qp_num = config.number.value();
  if (is_connected(config.type)) wc.src_qp = attributes.remote_qp.value();
  recv_queue.pop();
  if (!recv_cq->push(wc, solicited, context.completions, context.now)) on_overflow(context, *recv_cq);
}

void QueuePairCore::flush_receives(TransportContext& context) {
  while (!recv_queue.empty()) {
    ibv_wc wc{};
    wc.status = IBV_WC_WR_FLUSH_ERR;
    complete_recv(context, wc, false);
  }
  if (config.srq == nullptr || last_receive_raised_ || config.type == IBV_QPT_XRC_RECV) return;
  last_receive_raised_ = true;
  raise(context, IBV_EVENT_QP_LAST_WQE_REACHED);
}

// A completion was lost: neither the completion queue nor the queue pair can continue (IBTA 11.6.3.1, 11.6.3.2).
void QueuePairCore::on_overflow(TransportContext& context, CompletionRing& ring) {
  context.counters.add(Counter::kCqOverflows);
  if (ring.claim_overflow()) context.raise(IBV_EVENT_CQ_ERR, ring.object());
  fail_for_good(context);
}

void QueuePairCore::fail_for_good(TransportContext& context) {
  if (!fatal_raised_) raise(context, IBV_EVENT_QP_FATAL);
  fatal_raised_ = true;
  to_error();
}

void QueuePairCore::check_completion_queues(TransportContext& context) {
  if (state() != IBV_QPS_RESET && (send_cq.overflowed() || recv_cq->overflowed())) fail_for_good(context);
}

void QueuePairCore::raise(TransportContext& context, ibv_event_type type) const {
  context.raise(type, object());
}

}  // namespace roci
