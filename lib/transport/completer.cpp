// The half of the requester that takes responses (IBTA 9.7.5, 9.7.7): acknowledgements, NAKs, READ data.
#include <algorithm>

#include "transport/queue_pair_core.hpp"
#include "transport/requester.hpp"
#include "transport/scatter.hpp"
#include "wire/aeth.hpp"

namespace roci {

void Requester::on_response(TransportContext& context, const FrameView& view, const rte_mbuf* frame) {
  if (qp_.state() != IBV_QPS_RTS) {
    context.counters.add(Counter::kRxBadState);
    return;
  }
  // The response must be to something that was sent: una <= PSN < sent_end.
  const Psn psn = view.psn();
  if (is_before(psn, una_)) {
    context.counters.add(Counter::kResponsesDuplicate);
    return;
  }
  if (!is_before(psn, sent_end_)) {
    context.counters.add(Counter::kResponsesGhost);
    return;
  }
  switch (view.opcode->operation) {
    case Operation::kAcknowledge:
      on_acknowledge(context, view);
      break;
    case Operation::kReadResponse:
      on_read_response(context, view, frame);
      break;
    case Operation::kAtomicAcknowledge:
      on_atomic_response(context, view);
      break;
    default:  // an answer to an operation this requester never asks for
      context.counters.add(Counter::kResponsesGhost);
  }
}

void Requester::on_acknowledge(TransportContext& context, const FrameView& view) {
  const Psn psn = view.psn();
  const uint8_t syndrome = view.aeth().syndrome;
  switch (aeth_kind(syndrome)) {
    case AethKind::kAck:
      context.counters.add(Counter::kResponsesReceived);
      if (!acknowledge_before(context, psn + 1)) retry_gap(context);
      return;

    case AethKind::kRnrNak:
      context.counters.add(Counter::kRnrNaksReceived);
      acknowledge_before(context, psn);
      if (waits_for_rnr_) return;  // it said so before
      if (rnr_retries_left_ == 0) {
        fail_oldest(context, IBV_WC_RNR_RETRY_EXC_ERR);
        return;
      }
      if (rnr_retries_left_ != 7) --rnr_retries_left_;  // 7: without limit
      rewind();
      waits_for_rnr_ = true;
      deadline_ = context.now + rnr_delay(aeth_value(syndrome));
      return;

    case AethKind::kNak:
      break;

    case AethKind::kReserved:
      context.counters.add(Counter::kResponsesGhost);
      return;
  }
  switch (static_cast<NakCode>(aeth_value(syndrome))) {
    case NakCode::kPsnSequenceError:
      context.counters.add(Counter::kNaksSequenceReceived);
      acknowledge_before(context, psn);
      // Nothing was sent since the last retry: the same NAK again tells nothing new.
      if (!waits_for_rnr_ && !(cursor_psn() == una_)) retry(context);
      return;
    case NakCode::kInvalidRequest:
      on_negative(context, psn, IBV_WC_REM_INV_REQ_ERR);
      return;
    case NakCode::kRemoteAccessError:
      on_negative(context, psn, IBV_WC_REM_ACCESS_ERR);
      return;
    case NakCode::kRemoteOperationalError:
      on_negative(context, psn, IBV_WC_REM_OP_ERR);
      return;
    case NakCode::kInvalidRdRequest:
      break;
  }
  context.counters.add(Counter::kResponsesGhost);  // reserved codes are ignored
}

void Requester::on_negative(TransportContext& context, Psn psn, ibv_wc_status status) {
  context.counters.add(Counter::kNaksFatalReceived);
  acknowledge_before(context, psn);
  // READs before it whose data never came will not get it any more: the peer is in error.
  while (!qp_.send_queue.empty()) {
    const SendWqe& wqe = qp_.send_queue.at(qp_.send_queue.head());
    if (!wqe.started || !is_before(wqe.last_psn(), psn)) break;
    qp_.complete_send(context, wqe, IBV_WC_WR_FLUSH_ERR);
    qp_.send_queue.pop();
  }
  fail_oldest(context, status);
}

bool Requester::acknowledge_before(TransportContext& context, Psn end) {
  // Distances from una_ forwards: all of the 2^23 open PSNs may be acknowledged at once, which is one more than a
  // signed distance can say. `end` may lie behind una_ too.
  const auto open = [&](Psn psn) { return (psn.value() - una_.value()) & Psn::kMask; };
  if (open(end) > kMaxOpenPsns) return true;
  bool progress = false;
  bool whole = true;
  while (!(una_ == end)) {
    const SendWqe& oldest = qp_.send_queue.at(qp_.send_queue.head());
    if (oldest.needs_response()) {  // nothing else acknowledges a READ or an atomic
      whole = false;
      break;
    }
    progress = true;
    const Psn next = oldest.last_psn() + 1;
    if (open(end) < open(next)) {
      una_ = end;
      break;
    }
    una_ = next;
    complete_oldest(context);
  }
  if (progress) note_progress(context.now);
  return whole;
}

SendWqe* Requester::due_request(TransportContext& context, const FrameView& view) {
  uint32_t index = qp_.send_queue.head();
  const uint32_t posted = qp_.send_queue.posted();
  while (index != posted && qp_.send_queue.at(index).started && !qp_.send_queue.at(index).needs_response())
    ++index;
  if (index == posted || !qp_.send_queue.at(index).started) {
    context.counters.add(Counter::kResponsesGhost);
    return nullptr;
  }
  SendWqe& wqe = qp_.send_queue.at(index);
  const Psn expected = wqe.first_psn + wqe.responses;
  if (is_before(view.psn(), expected)) {
    context.counters.add(Counter::kResponsesDuplicate);
    return nullptr;
  }
  acknowledge_before(context, wqe.first_psn);  // everything in front of it has been executed
  if (view.psn() == expected) return &wqe;
  context.counters.add(Counter::kResponsesOutOfOrder);
  retry_gap(context);
  return nullptr;
}

void Requester::on_atomic_response(TransportContext& context, const FrameView& view) {
  const SendWqe* atomic = due_request(context, view);
  if (atomic == nullptr) return;
  if (!atomic->is_atomic() || aeth_kind(view.aeth().syndrome) != AethKind::kAck) {
    fail_oldest(context, IBV_WC_BAD_RESP_ERR);
    return;
  }
  const uint64_t original = view.atomic_ack().original.get();
  if (!for_each_sge(context.memory, qp_.config.pd, {atomic->sges(), atomic->sge_count}, 0, sizeof original,
                    Access::kLocalWrite, [&](uint8_t* host, uint32_t at, uint32_t n) {
                      std::memcpy(host, reinterpret_cast<const uint8_t*>(&original) + at, n);
                    })) {
    fail_oldest(context, IBV_WC_LOC_PROT_ERR);
    return;
  }
  context.counters.add(Counter::kResponsesReceived);
  una_ = view.psn() + 1;
  complete_oldest(context);
  note_progress(context.now);
}

void Requester::on_read_response(TransportContext& context, const FrameView& view, const rte_mbuf* frame) {
  SendWqe* request = due_request(context, view);
  if (request == nullptr) return;
  SendWqe& read = *request;
  if (!read.is_read()) {
    fail_oldest(context, IBV_WC_BAD_RESP_ERR);
    return;
  }

  const uint32_t mtu = qp_.attributes.path_mtu;
  const uint64_t offset = static_cast<uint64_t>(read.responses) * mtu;
  const auto due = static_cast<uint32_t>(std::min<uint64_t>(mtu, read.length - offset));
  const bool last = read.responses + 1 == read.packets;
  const bool right_kind =
      view.opcode->ends_message() == last &&
      (!view.opcode->has(Header::kAeth) || aeth_kind(view.aeth().syndrome) == AethKind::kAck);
  if (!right_kind || view.payload_length != due) {
    fail_oldest(context, IBV_WC_BAD_RESP_ERR);
    return;
  }
  if (!scatter(context.memory, qp_.config.pd, {read.sges(), read.sge_count}, offset, frame,
               view.payload_offset, due)) {
    fail_oldest(context, IBV_WC_LOC_PROT_ERR);
    return;
  }
  context.counters.add(Counter::kResponsesReceived);
  ++read.responses;
  una_ = view.psn() + 1;
  if (last) complete_oldest(context);
  note_progress(context.now);
}

void Requester::complete_oldest(TransportContext& context) {
  const SendWqe& wqe = qp_.send_queue.at(qp_.send_queue.head());
  if (wqe.needs_response()) {
    --reads_outstanding_;
    read_bytes_outstanding_ -= wqe.length;
  }
  qp_.complete_send(context, wqe, IBV_WC_SUCCESS);
  qp_.send_queue.pop();
}

void Requester::note_progress(Nanos now) {
  retries_left_ = qp_.attributes.retry_count;
  rnr_retries_left_ = qp_.attributes.rnr_retry;
  gap_retried_ = false;
  // What the cursor had gone back for may have been acknowledged meanwhile.
  if (static_cast<int32_t>(cursor_index_ - qp_.send_queue.head()) < 0 || is_before(cursor_psn(), una_))
    rewind();
  if (waits_for_rnr_) return;
  deadline_ = outstanding() && timeout() != kNever ? now + timeout() : kNever;
}

void Requester::retry(TransportContext& context) {
  if (retries_left_ == 0) {
    fail_oldest(context, IBV_WC_RETRY_EXC_ERR);
    return;
  }
  --retries_left_;
  rewind();
  if (timeout() != kNever) deadline_ = context.now + timeout();
}

void Requester::retry_gap(TransportContext& context) {
  if (gap_retried_ && gap_psn_ == una_) return;
  if (waits_for_rnr_ || cursor_psn() == una_) return;
  gap_retried_ = true;
  gap_psn_ = una_;
  retry(context);
}

}  // namespace roci
