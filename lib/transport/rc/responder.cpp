// Receive half of the responder: checks the sequence of requests, validates and executes them (IBTA 9.7.4).
#include "transport/rc/responder.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <utility>

#include "base/os/guarded_access.hpp"
#include "base/trace_points.hpp"
#include "memory/flush_verbs.hpp"
#include "transport/messages/receive_completion.hpp"
#include "transport/messages/scatter.hpp"
#include "transport/queue_pair/queue_pair_core.hpp"

namespace roci {
namespace {

// Frames may consist of several segments.
bool has_same_bytes(const rte_mbuf& a, uint32_t at_a, const rte_mbuf& b, uint32_t at_b, uint32_t length) {
  std::array<uint8_t, 256> of_a, of_b;
  for (uint32_t done = 0; done < length;) {
    const uint32_t some = std::min<uint32_t>(length - done, of_a.size());
    const void* in_a = rte_pktmbuf_read(&a, at_a + done, some, of_a.data());
    const void* in_b = rte_pktmbuf_read(&b, at_b + done, some, of_b.data());
    if (in_a == nullptr || in_b == nullptr || std::memcmp(in_a, in_b, some) != 0) return false;
    done += some;
  }
  return true;
}

// Whether two requests are copies of one: the same operation, extended headers and payload. AckReq, marks of switches
// and the values of extension blocks may differ in a retransmission.
bool is_same_request(const FrameView& a, const rte_mbuf& frame_a, const FrameView& b, const rte_mbuf& frame_b,
                     bool has_payload) {
  constexpr auto kBthBytes = static_cast<uint32_t>(sizeof(Bth));
  const auto headers = [](const FrameView& view) { return view.bth_offset + kBthBytes; };
  const uint32_t extended = a.opcode->header_bytes - kBthBytes;
  return a.opcode == b.opcode && a.bth().solicited() == b.bth().solicited() && a.pad == b.pad &&
         a.payload_length == b.payload_length &&
         has_same_bytes(frame_a, headers(a), frame_b, headers(b), extended) &&
         (!has_payload ||
          has_same_bytes(frame_a, a.payload_offset, frame_b, b.payload_offset, a.payload_length));
}

// LSNs of a request that has a response of its own; as Requester::lsn_bytes().
uint64_t lsn_bytes(const FrameView& view) {
  switch (view.opcode->operation) {
    case Operation::kReadRequest:
      return sizeof(Reth);
    case Operation::kCompareSwap:
    case Operation::kFetchAdd:
      return sizeof(AtomicEth);
    default:
      return view.payload_length;
  }
}

}  // namespace

void Responder::reset(Psn expected, uint32_t reads) {
  expected_ = expected;
  msn_ = Msn{0};
  pending_ = Pending::kNone;
  executed_any_ = nak_sent_ = in_message_ = pending_ce_ = duplicate_before_responses_ = false;
  pending_packets_ = 0;
  flow_ = ReceiveFlow{};
  far_nak_interval_ = UINT16_MAX;
  received_ = announced_ = 0;
  responses_allocated_ = false;
  next_resource_ = front_resource_ = active_responses_ = 0;
  remember(reads);  // without effect: modify() has called remember_reads() before
}

ExtensionSession* Responder::session() const { return qp_.session.get(); }

bool Responder::has_payload() const { return qp_.config.contents != RoceWriter::Contents::kHeaders; }

void Responder::on_request(TransportContext& context, const FrameView& view, const rte_mbuf* frame,
                           const ExtensionView& block) {
  const ibv_qp_state state = qp_.state();
  if (state != IBV_QPS_RTR && state != IBV_QPS_RTS && state != IBV_QPS_SQD) {
    context.counters.add(Counter::kRxBadState);
    return;
  }
  const bool ce = view.ecn() == Ecn::kCe;
  if (ce) context.counters.add(Counter::kRxCeMarked);
  flow_.count(ce);
  if (session() != nullptr) session()->note_data(context, view, block, Direction::kRequests);
  const Psn psn = view.psn();
  trace::packet_received(qp_.number().value(), psn.value(), view.bth().opcode);
  const int32_t ahead = psn - expected_;
  if (ahead > 0) {
    context.counters.add(Counter::kRequestsOutOfOrder);
    pending_ce_ |= ce;
    on_gap(context, view, frame, ahead);
  } else if (ahead < 0) {
    pending_ce_ |= ce;
    on_duplicate(context, view);
  } else if (session() == nullptr || !session()->reorder_buffer) {
    take(context, view, frame);
  } else {
    // The packet may have been buffered while no receive request was available. Then it arrives a second time.
    if (rte_mbuf* const kept = session()->reorder_buffer->take(expected_); kept != nullptr)
      rte_pktmbuf_free(kept);
    if (take(context, view, frame) == Verdict::kExecuted) execute_buffered(context);
  }
}

void Responder::refuse(TransportContext& context, const FrameView& view) {
  nak_sent_ = false;
  answer(context, view, Verdict::kInvalidRequest);
}

uint8_t* Responder::payload_target(const MemoryTable& memory, const FrameView& view) {
  if (view.opcode->position != Position::kMiddle || !(view.psn() == expected_) || !in_message_ ||
      check_sequence(view) != Verdict::kExecuted || check_length(view) != Verdict::kExecuted) {
    return nullptr;
  }
  const uint32_t length = view.payload_length;
  if (operation_ == Operation::kWrite) {
    uint8_t* where = nullptr;
    if (length >= announced_ - received_) return nullptr;
    memory.check_remote(rkey_, qp_.accessor(), va_, length, Access::kRemoteWrite, &where);
    return where;
  }
  const RecvWqe& wqe = qp_.recv_queue.at(qp_.recv_queue.head());
  if (length > wqe.capacity - received_) return nullptr;
  return one_piece(memory, qp_.config.recv_pd(), wqe.pieces(), received_, length);
}

Responder::Verdict Responder::take(TransportContext& context, const FrameView& view, const rte_mbuf* frame) {
  nak_sent_ = false;
  if (pending_ == Pending::kAck && must_acknowledge_first(view)) send_acknowledgment_now(context);
  Verdict verdict = check_sequence(view);
  if (verdict == Verdict::kExecuted) verdict = check_length(view);
  if (verdict == Verdict::kExecuted) verdict = execute(context, view, frame);
  answer(context, view, verdict);
  return verdict;
}

// Whether the pending acknowledgment must be sent before this packet is executed. Without a CE-ECHO, an acknowledgment
// reports all its packets as marked or all as unmarked (DCTCP, RFC 8257 §3.2).
bool Responder::must_acknowledge_first(const FrameView& view) const {
  if (pending_packets_ >= qp_.config.packets_per_ack) return true;
  if (session() != nullptr &&
      (session()->feedback_types(Direction::kRequests, false) & bit_of(ExtensionType::kCeEcho)) != 0)
    return false;
  const bool has_own_response =
      view.opcode->operation != Operation::kSend && view.opcode->operation != Operation::kWrite;
  return pending_ce_ != (view.ecn() == Ecn::kCe) || (pending_ce_ && has_own_response);
}

// When the port is full, or READ responses precede it, the acknowledgment remains pending and covers more packets. If
// one of them was marked, it reports all as marked.
void Responder::send_acknowledgment_now(TransportContext& context) {
  if (qp_.path_ready() && active_responses_ == 0) send_pending(context);
}

// Packets are missing. Sends one NAK for the gap; with selective repeat, one for each batch that arrives after the gap,
// since it reports the packets that need no retransmission. The PSN of a forged packet is a guess, and most guesses are far
// ahead. Their NAKs are limited, because each makes the peer retransmit and reduce its window. If the packets of such a gap
// are lost, the time-out of the peer recovers them.
void Responder::on_gap(TransportContext& context, const FrameView& view, const rte_mbuf* frame,
                       int32_t ahead) {
  ExtensionSession* extras = session();
  bool repeat_nak = false;
  if (extras != nullptr && extras->reorder_buffer &&
      static_cast<uint32_t>(ahead) < extras->reorder_buffer->window()) {
    ReorderBuffer& kept = *extras->reorder_buffer;
    if (kept.has(view.psn())) {
      repeat_nak = discard_if_different(context, view, frame) && extras->terms.may_send;
    } else if (kept.insert(view.psn(), const_cast<rte_mbuf*>(frame))) {
      context.counters.add(Counter::kPacketsKept);
      extras->newest_buffered = view.psn();
      repeat_nak = extras->terms.may_send;
    }
  }
  if (nak_sent_ && !repeat_nak) return;
  if (pending_ == Pending::kRetry && aeth_kind(pending_syndrome_) == AethKind::kRnrNak) return;
  if (ahead > kLargestGap) {
    const auto interval = static_cast<uint16_t>(context.now / kFarNakInterval);
    if (std::exchange(far_nak_interval_, interval) == interval) return;
  }
  set_pending_nak(nak_syndrome(NakCode::kPsnSequenceError));
}

// One of two different packets with the same PSN was not sent by the peer. Neither is executed: the PSN is accepted only
// when it is the expected one, as without selective repeat, and is requested then.
bool Responder::discard_if_different(TransportContext& context, const FrameView& view,
                                     const rte_mbuf* frame) {
  ReorderBuffer& kept = *session()->reorder_buffer;
  const rte_mbuf* const earlier = kept.get(view.psn());
  FrameView earlier_view;
  ExtensionView block;
  parse_frame(earlier_view, rte_pktmbuf_mtod(earlier, const uint8_t*), rte_pktmbuf_data_len(earlier),
              rte_pktmbuf_pkt_len(earlier));
  session()->open_block(earlier_view, earlier, block);
  if (is_same_request(earlier_view, *earlier, view, *frame, has_payload())) return false;
  kept.refuse(view.psn());
  context.counters.add(Counter::kPacketsConflicting);
  std::optional<Psn>& end = session()->discarded_end;
  if (!end || is_before(*end, view.psn() + 1)) end = view.psn() + 1;
  return true;
}

// The gap is closed: the packets buffered after it are executed in order, as if they arrived now.
void Responder::execute_buffered(TransportContext& context) {
  ReorderBuffer& kept = *session()->reorder_buffer;
  Verdict verdict = Verdict::kExecuted;
  while (verdict == Verdict::kExecuted && !kept.empty()) {
    const Psn psn = expected_;
    rte_mbuf* const frame = kept.take(psn);
    if (frame == nullptr) break;
    FrameView view;
    ExtensionView block;
    parse_frame(view, rte_pktmbuf_mtod(frame, const uint8_t*), rte_pktmbuf_data_len(frame),
                rte_pktmbuf_pkt_len(frame));
    session()->open_block(view, frame, block);
    view.placed = !has_payload();
    verdict = take(context, view, frame);
    if (verdict == Verdict::kNotReady) kept.insert(psn, frame);
    rte_pktmbuf_free(frame);
    if (qp_.state() == IBV_QPS_ERR) break;
  }
  std::optional<Psn>& discarded = session()->discarded_end;
  if (discarded && !is_before(expected_, *discarded)) discarded.reset();
  // There is another gap.
  if ((!kept.empty() || discarded) && verdict == Verdict::kExecuted && qp_.state() != IBV_QPS_ERR &&
      session()->terms.may_send)
    set_pending_nak(nak_syndrome(NakCode::kPsnSequenceError));
  if (qp_.state() == IBV_QPS_ERR) kept.clear();
}

// IBTA 9.7.4.1.1, 9.7.4.1.2: the opcode must continue the current message, or start one if there is none.
Responder::Verdict Responder::check_sequence(const FrameView& view) const {
  if (!in_message_) return view.opcode->starts_message() ? Verdict::kExecuted : Verdict::kInvalidRequest;
  const bool goes_on = !view.opcode->starts_message() && view.opcode->operation == operation_;
  return goes_on ? Verdict::kExecuted : Verdict::kInvalidRequest;
}

// IBTA 9.7.4.1.6: checks payload and pad count against the opcode and the path MTU.
Responder::Verdict Responder::check_length(const FrameView& view) const {
  const PayloadCheck check =
      check_payload(*view.opcode, view.payload_length, view.pad, qp_.attributes.path_mtu);
  return check == PayloadCheck::kRight ? Verdict::kExecuted : Verdict::kInvalidRequest;
}

Responder::Verdict Responder::execute(TransportContext& context, const FrameView& view,
                                      const rte_mbuf* frame) {
  switch (view.opcode->operation) {
    case Operation::kSend:
      return execute_send(context, view, frame);
    case Operation::kWrite:
      return execute_write(context, view, frame);
    case Operation::kReadRequest:
      return execute_read(context, view);
    case Operation::kCompareSwap:
    case Operation::kFetchAdd:
      return execute_atomic(context, view);
    case Operation::kFlush:
      return execute_flush(context, view);
    case Operation::kAtomicWrite:
      return execute_atomic_write(context, view, frame);
    default:
      return Verdict::kInvalidRequest;  // not supported by this queue pair (IBTA 9.7.4.1.5)
  }
}

Responder::Verdict Responder::execute_send(TransportContext& context, const FrameView& view,
                                           const rte_mbuf* frame) {
  const OpcodeInfo& info = *view.opcode;
  if (info.starts_message()) {
    if (!qp_.take_receive(context)) return Verdict::kNotReady;
    received_ = 0;
  }
  const RecvWqe& wqe = qp_.recv_queue.at(qp_.recv_queue.head());
  ibv_wc wc{};
  if (view.payload_length > wqe.capacity - received_) {
    wc.status = IBV_WC_LOC_LEN_ERR;
    qp_.to_error();  // before the completion is visible
    qp_.complete_recv(context, wc, true);
    return Verdict::kTooLong;  // IBTA 9.9.3: length error
  }
  // The key must be that of a window bound to this queue pair (IBTA 9.4.1.1.3, 10.6.7.2.6). The completion status is
  // that of Linux soft-RoCE.
  if (info.has(Header::kIeth) &&
      !context.memory.invalidate(qp_.accessor(), MemoryKey{view.ieth().rkey.get()})) {
    wc.status = IBV_WC_REM_INV_REQ_ERR;
    qp_.to_error();  // before the completion is visible
    qp_.complete_recv(context, wc, true);
    return Verdict::kAccessReported;
  }
  if (!view.placed && !scatter(context.memory, qp_.config.recv_pd(), wqe.pieces(), received_, frame,
                               view.payload_offset, view.payload_length)) {
    wc.status = IBV_WC_LOC_PROT_ERR;
    qp_.to_error();  // before the completion is visible
    qp_.complete_recv(context, wc, true);
    return Verdict::kOperationError;
  }
  received_ += view.payload_length;
  if (info.ends_message()) complete_message(context, view);
  return Verdict::kExecuted;
}

Responder::Verdict Responder::execute_write(TransportContext& context, const FrameView& view,
                                            const rte_mbuf* frame) {
  const OpcodeInfo& info = *view.opcode;
  if (info.starts_message()) {
    if ((qp_.attributes.access & IBV_ACCESS_REMOTE_WRITE) == 0) return Verdict::kInvalidRequest;
    if (view.reth().length.get() > kMaxMessage) return Verdict::kInvalidRequest;
    received_ = 0;
    announced_ = view.reth().length.get();
    va_ = view.reth().va.get();
    rkey_ = MemoryKey{view.reth().rkey.get()};
  }
  const uint32_t left = announced_ - received_;
  if (info.ends_message() ? view.payload_length != left : view.payload_length >= left)
    return Verdict::kInvalidRequest;
  // The whole range is checked before its first byte is written. Each packet is checked again, since the region may be
  // deregistered in between.
  uint8_t* where = nullptr;
  const uint32_t range = info.starts_message() ? announced_ : view.payload_length;
  if (context.memory.check_remote(rkey_, qp_.accessor(), va_, range, Access::kRemoteWrite, &where) !=
      AccessOutcome::kAllowed) {
    return refuse_write(context, info, false);
  }
  if (info.consumes_receive() && !qp_.take_receive(context)) return Verdict::kNotReady;
  if (view.payload_length > 0 && !view.placed &&
      !write_payload(where, frame, view.payload_offset, view.payload_length, info.ends_message())) {
    return refuse_write(context, info, true);
  }
  va_ += view.payload_length;
  received_ += view.payload_length;
  if (info.ends_message() && info.consumes_receive()) complete_message(context, view);
  if (context.placement != nullptr && info.ends_message()) grant(*context.placement, context.memory);
  return Verdict::kExecuted;
}

// A refused WRITE with immediate completes its receive request with an error (IBTA 11.6.2, Local Access Error).
Responder::Verdict Responder::refuse_write(TransportContext& context, const OpcodeInfo& info,
                                           bool receive_taken) {
  if (!info.consumes_receive() || !(receive_taken || qp_.take_receive(context))) return Verdict::kAccessError;
  ibv_wc wc{};
  wc.status = IBV_WC_LOC_ACCESS_ERR;
  qp_.to_error();  // before the completion is visible
  qp_.complete_recv(context, wc, true);
  return Verdict::kAccessReported;
}

// Permits the peer to place further WRITEs with this key itself.
void Responder::grant(Placement& placement, const MemoryTable& memory) {
  if (qp_.service != TransportClass::kRc || announced_ == 0) return;
  const MemoryArea* const region = memory.find_region(rkey_);
  if (region == nullptr) return;  // a memory window
  placement.grant(qp_.attributes.path.destination_mac, {qp_.number(), rkey_},
                  {region->start, region->length, region->host});
  qp_.granted = true;
}

Responder::Verdict Responder::execute_read(TransportContext& context, const FrameView& view) {
  if ((qp_.attributes.access & IBV_ACCESS_REMOTE_READ) == 0) return Verdict::kInvalidRequest;
  if (!resource_free()) return Verdict::kInvalidRequest;
  const Reth& reth = view.reth();
  const uint32_t length = reth.length.get();
  if (length > kMaxMessage) return Verdict::kInvalidRequest;
  uint8_t* where = nullptr;
  if (context.memory.check_remote(MemoryKey{reth.rkey.get()}, qp_.accessor(), reth.va.get(), length,
                                  Access::kRemoteRead, &where) != AccessOutcome::kAllowed) {
    return Verdict::kAccessError;
  }
  const uint32_t mtu = qp_.attributes.path_mtu;
  const uint32_t packets = std::max(1U, (length + mtu - 1) / mtu);
  trace::request_executed(qp_.number().value(), expected_.value(), view.bth().opcode);
  if (packets > kDiscardEvery && responses_allocated_) [[unlikely]]
    discard_old_requests();
  Resource& read = take_resource();
  read.operation = Operation::kReadRequest;
  read.packets = packets;
  read.pd = qp_.config.pd;
  read.va = reth.va.get();
  read.rkey = reth.rkey.get();
  read.length = length;
  start_response(read);
  return Verdict::kExecuted;
}

// The operation is atomic with respect to all other atomic accesses to the 8 bytes, including those of the local CPU.
Responder::Verdict Responder::execute_atomic(TransportContext& context, const FrameView& view) {
  if ((qp_.attributes.access & IBV_ACCESS_REMOTE_ATOMIC) == 0) return Verdict::kInvalidRequest;
  if (!resource_free()) return Verdict::kInvalidRequest;
  const AtomicEth& request = view.atomic_eth();
  const uint64_t va = request.va.get();
  if (va % sizeof(uint64_t) != 0) return Verdict::kInvalidRequest;
  uint8_t* where = nullptr;
  if (context.memory.check_remote(MemoryKey{request.rkey.get()}, qp_.accessor(), va, sizeof(uint64_t),
                                  Access::kRemoteAtomic, &where) != AccessOutcome::kAllowed) {
    return Verdict::kAccessError;
  }
  // A region may map an aligned address to an unaligned one.
  if (reinterpret_cast<uintptr_t>(where) % sizeof(uint64_t) != 0) return Verdict::kOperationError;
  auto* const word = reinterpret_cast<uint64_t*>(where);
  const uint64_t original =
      view.opcode->operation == Operation::kFetchAdd
          ? guarded_fetch_add(word, request.swap_or_add.get())
          : guarded_compare_swap(word, request.compare.get(), request.swap_or_add.get());
  if (take_memory_fault()) return Verdict::kAccessError;
  trace::request_executed(qp_.number().value(), expected_.value(), view.bth().opcode);
  Resource& atomic = take_resource();
  atomic.operation = view.opcode->operation;
  atomic.packets = 1;
  atomic.original = original;
  start_response(atomic);
  return Verdict::kExecuted;
}

// All WRITEs before it have been executed by the CPU, whose caches are coherent: they are globally visible after a fence.
// No memory is persistent.
Responder::Verdict Responder::execute_flush(TransportContext& context, const FrameView& view) {
  const Feth& feth = view.feth();
  if ((feth.type() & ~kFlushTypeGlobal) != 0 || feth.level() > kFlushRegion) return Verdict::kInvalidRequest;
  if ((qp_.attributes.access & kAccessFlushGlobal) == 0) return Verdict::kInvalidRequest;
  if (!resource_free()) return Verdict::kInvalidRequest;
  const Reth& reth = view.reth();
  const MemoryKey key{reth.rkey.get()};
  const uint32_t length = feth.level() == kFlushRange ? reth.length.get() : 0;
  if (length > kMaxMessage) return Verdict::kInvalidRequest;
  AccessOutcome outcome = context.memory.check_remote_key(key, qp_.accessor(), Access::kFlushGlobal);
  if (outcome == AccessOutcome::kAllowed) {
    uint8_t* where = nullptr;
    outcome =
        context.memory.check_remote(key, qp_.accessor(), reth.va.get(), length, Access::kFlushGlobal, &where);
  }
  if (outcome != AccessOutcome::kAllowed) return Verdict::kAccessError;
  std::atomic_thread_fence(std::memory_order_seq_cst);
  answer_without_data(view);
  return Verdict::kExecuted;
}

Responder::Verdict Responder::execute_atomic_write(TransportContext& context, const FrameView& view,
                                                   const rte_mbuf* frame) {
  if ((qp_.attributes.access & IBV_ACCESS_REMOTE_WRITE) == 0) return Verdict::kInvalidRequest;
  if (!resource_free()) return Verdict::kInvalidRequest;
  const Reth& reth = view.reth();
  uint64_t value = 0;
  if (reth.length.get() != sizeof value || view.payload_length != sizeof value)
    return Verdict::kInvalidRequest;
  if (reth.va.get() % sizeof value != 0) return Verdict::kInvalidRequest;
  uint8_t* where = nullptr;
  if (context.memory.check_remote(MemoryKey{reth.rkey.get()}, qp_.accessor(), reth.va.get(), sizeof value,
                                  Access::kRemoteWrite, &where) != AccessOutcome::kAllowed) {
    return Verdict::kAccessError;
  }
  if (reinterpret_cast<uintptr_t>(where) % sizeof value != 0) return Verdict::kOperationError;
  uint64_t buffer = 0;
  std::memcpy(&value, rte_pktmbuf_read(frame, view.payload_offset, sizeof value, &buffer), sizeof value);
  guarded_atomic_store(reinterpret_cast<uint64_t*>(where), value);
  if (take_memory_fault()) return Verdict::kAccessError;
  answer_without_data(view);
  return Verdict::kExecuted;
}

// Flushes and atomic writes are answered by a READ response without data (IBTA annex A19).
void Responder::answer_without_data(const FrameView& view) {
  trace::request_executed(qp_.number().value(), expected_.value(), view.bth().opcode);
  Resource& request = take_resource();
  request.operation = view.opcode->operation;
  request.packets = 1;
  start_response(request);
}

// The receive completion of a SEND or of a WRITE with immediate.
void Responder::complete_message(TransportContext& context, const FrameView& view) {
  ibv_wc wc = receive_completion(view, received_);
  qp_.complete_recv(context, wc, view.bth().solicited());
}

void Responder::answer(TransportContext& context, const FrameView& view, Verdict verdict) {
  NakCode code = NakCode::kInvalidRequest;
  switch (verdict) {
    case Verdict::kExecuted: {
      const OpcodeInfo& info = *view.opcode;
      context.counters.add(Counter::kRequestsReceived);
      executed_any_ = true;
      if (info.operation != Operation::kSend && info.operation != Operation::kWrite) {
        pending_ = Pending::kNone;  // its response acknowledges everything before it
        flow_.received += lsn_bytes(view);
        return;
      }
      trace::request_executed(qp_.number().value(), expected_.value(), view.bth().opcode);
      ++expected_;
      if (expected_.value() % kDiscardEvery == 0 && responses_allocated_) [[unlikely]]
        discard_old_requests();
      in_message_ = !info.ends_message();
      operation_ = info.operation;
      if (info.ends_message()) ++msn_;
      flow_.received += view.payload_length;
      if (pending_ == Pending::kRetry) pending_ = Pending::kNone;  // the gap is closed
      ++pending_packets_;
      pending_ce_ |= view.ecn() == Ecn::kCe;
      if (view.bth().ack_requested()) pending_ = Pending::kAck;
      return;
    }
    case Verdict::kDropped:
      return;
    case Verdict::kNotReady:
      set_pending_nak(rnr_syndrome(qp_.attributes.min_rnr_timer));
      return;
    // Errors that no receive completion reports raise an event (IBTA 9.9.3.1, 11.6.3.2).
    case Verdict::kInvalidRequest:
      qp_.raise(context, IBV_EVENT_QP_REQ_ERR);
      code = NakCode::kInvalidRequest;
      break;
    case Verdict::kTooLong:
      code = NakCode::kInvalidRequest;
      break;
    case Verdict::kAccessError:
      qp_.raise(context, IBV_EVENT_QP_ACCESS_ERR);
      code = NakCode::kRemoteAccessError;
      break;
    case Verdict::kAccessReported:
      code = NakCode::kRemoteAccessError;
      break;
    case Verdict::kOperationError:
      if (view.opcode->operation != Operation::kSend) qp_.raise(context, IBV_EVENT_QP_FATAL);
      code = NakCode::kRemoteOperationalError;
      break;
  }
  end_with(code, expected_);
}

// Schedules one request for retransmission from the expected PSN on: a NAK, or an RNR NAK with a delay.
void Responder::set_pending_nak(uint8_t syndrome) {
  nak_sent_ = true;
  pending_ = Pending::kRetry;
  pending_syndrome_ = syndrome;
  pending_psn_ = expected_;
}

void Responder::end_with(NakCode code, Psn psn) {
  pending_ = Pending::kFatal;
  pending_syndrome_ = nak_syndrome(code);
  pending_psn_ = psn;
  qp_.to_error();
}

void Responder::flush(TransportContext& context) {
  in_message_ = false;
  if (session() != nullptr && session()->reorder_buffer) session()->reorder_buffer->clear();
  qp_.flush_receives(context);
}

}  // namespace roci
