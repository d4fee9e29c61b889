// Receive half of the requester (IBTA 9.7.5, 9.7.7): processes acknowledgments, NAKs, READ responses and atomic
// results.
#include <algorithm>
#include <bit>

#include "base/trace_points.hpp"
#include "transport/messages/scatter.hpp"
#include "transport/queue_pair/queue_pair_core.hpp"
#include "transport/rc/requester.hpp"
#include "wire/headers/aeth.hpp"

namespace roci {

void Requester::on_response(TransportContext& context, const FrameView& view, const rte_mbuf* frame,
                            const ExtensionView& block) {
  if (qp_.state() != IBV_QPS_RTS && qp_.state() != IBV_QPS_SQD) {
    context.counters.add(Counter::kRxBadState);
    return;
  }
  // A response must be to a packet that was sent: una <= PSN < sent_end.
  const Psn psn = view.psn();
  if (is_before(psn, una_)) {
    context.counters.add(Counter::kResponsesDuplicate);
    if (view.opcode->operation == Operation::kReadResponse) {
      note_peer_busy(context.now);
      repeat_read_acknowledgment();
    }
    return;
  }
  if (!is_before(psn, sent_end_)) {
    context.counters.add(Counter::kResponsesGhost);
    return;
  }
  trace::packet_received(qp_.number().value(), psn.value(), view.bth().opcode);
  newly_acknowledged_ = 0;
  switch (view.opcode->operation) {
    case Operation::kAcknowledge:
      on_acknowledge(context, view, block);
      break;
    case Operation::kReadResponse: {
      const bool ce = view.ecn() == Ecn::kCe;
      if (ce) context.counters.add(Counter::kRxCeMarked);
      responses_.count(ce);
      if (session() != nullptr) session()->note_data(context, view, block, Direction::kResponses);
      on_read_response(context, view, frame);
      break;
    }
    case Operation::kAtomicAcknowledge:
      on_atomic_response(context, view);
      break;
    default:  // a response to an operation that this requester does not use
      context.counters.add(Counter::kResponsesGhost);
  }
  note_marks(view, block);
}

void Requester::on_acknowledge(TransportContext& context, const FrameView& view, const ExtensionView& block) {
  const Psn psn = view.psn();
  if (block.types != 0) session()->take_feedback(context, block, Direction::kRequests, flow_);
  const uint8_t syndrome = view.aeth().syndrome;
  trace::ack_received(qp_.number().value(), psn.value(), syndrome);
  switch (aeth_kind(syndrome)) {
    case AethKind::kAck:
      context.counters.add(Counter::kResponsesReceived);
      if (!acknowledge_before(context, psn + 1)) retry_gap(context);
      return;

    case AethKind::kRnrNak:
      context.counters.add(Counter::kRnrNaksReceived);
      acknowledge_before(context, psn);
      // The packet has arrived, so NAKs and time-outs before this are no reason to give up. The responder of Linux sends
      // a NAK with the same PSN for the packets behind it.
      retries_left_ = qp_.attributes.retry_count;
      if (phase_ == Phase::kRnrWait) return;  // a repeated RNR NAK
      if (rnr_retries_left_ == 0) {
        fail_oldest(context, IBV_WC_RNR_RETRY_EXC_ERR);
        return;
      }
      if (rnr_retries_left_ != 7) --rnr_retries_left_;  // 7: unlimited
      rtt_sample_ = RttSample::kNone;
      rewind();
      recovery_.set_probing(LossRecovery::Probing::kNone);
      phase_ = Phase::kRnrWait;
      tail_probe_at_ = kNever;
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
      on_sequence_nak(context, psn, block);
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

// BECN in a standard acknowledgment: all packets that it is the first to acknowledge were marked. The receiver sends a
// separate acknowledgment wherever marking starts or ends.
void Requester::note_marks(const FrameView& view, const ExtensionView& block) {
  if (SendGate* const here = gate(); here != nullptr) [[unlikely]]
    here->acked_packets += newly_acknowledged_;
  recovery_.note_acknowledged(newly_acknowledged_);
  if (block.has(ExtensionType::kCeEcho)) return;
  flow_.packets_acked += newly_acknowledged_;
  if (!view.bth().becn()) return;
  // A mark may arrive without newly acknowledged packets. The marked packets never exceed the acknowledged packets.
  flow_.packets_marked =
      std::min(flow_.packets_marked + std::max(newly_acknowledged_, 1U), flow_.packets_acked);
}

// The receiver holds everything before `expected`, and at least one packet after it.
void Requester::on_sequence_nak(TransportContext& context, Psn expected, const ExtensionView& block) {
  if (phase_ == Phase::kRnrWait) return;
  SackBoard* board = sack_board();
  if (board == nullptr || !block.has(ExtensionType::kSack)) {
    // While the negotiation is in progress, only one of the two ends may use selective repeat. A receiver that uses it
    // repeats the NAK of the gap with each batch after the gap.
    if (session() != nullptr && has_retried_gap()) return;
    if (board == nullptr && recently_rewound(context.now, expected)) {
      context.counters.add(Counter::kNaksEarly);
      return;
    }
    gap_retried_ = 1;
    gap_psn_ = una_;
    // Without a packet sent since the last retry, the same NAK has no new information.
    if (!(psn_at(cursor_) == una_)) {
      note_loss();
      retry(context, expected, sent_end_, trace::Reason::kNak);
    }
    return;
  }
  Psn end = expected + 1;  // of the packets that may be missing: before the last packet that arrived
  bool learned = false;
  const Psn from{block.sack().psn.get()};
  for (uint64_t left = block.sack().kept.get(); left != 0; left &= left - 1) {
    const Psn kept = from + static_cast<uint32_t>(std::countr_zero(left));
    if (!sent_before(kept) || psns_between(una_, kept) >= board->window()) continue;
    learned |= board->set(kept);
    if (is_before(end, kept)) end = kept;
  }
  // Newly arrived packets are progress, although the oldest packet is missing: only silence uses up retries.
  if (learned) record_progress(context);
  if (!session()->repair.started || !is_before(expected, session()->repair.covered)) {
    session()->repair.covered = sent_end_;
    note_loss();
    start_repair(expected, end, trace::Reason::kNak);
    return;
  }
  // The NAK belongs to the current repair. A packet is retransmitted again when it is still missing two round trips
  // later.
  const Nanos max_wait = flow_.rtt == kNever ? timeout() / 4 : 2 * flow_.rtt;
  ExtensionSession::Repair& repair = session()->repair;
  if (phase_ != Phase::kRepair && is_before(expected, repair.end) &&
      context.now - repair.sent_at > max_wait) {
    start_repair(expected, end, trace::Reason::kNak);
  } else if (is_before(repair.end, end)) {
    const Psn behind = is_before(repair.end, expected) ? expected : repair.end;
    if (phase_ == Phase::kRepair) {
      repair.end = end;
    } else {
      start_repair(behind, end, trace::Reason::kNak);
    }
  }
}

void Requester::on_negative(TransportContext& context, Psn psn, ibv_wc_status status) {
  context.counters.add(Counter::kNaksFatalReceived);
  acknowledge_before(context, psn);
  qp_.to_error();  // before the completions are visible
  // READs before `psn` whose data is missing will not complete: the peer is in the error state.
  while (!qp_.send_queue.empty()) {
    const SendWqe& wqe = qp_.send_queue.at(qp_.send_queue.head());
    if (!wqe.started || !is_before(wqe.last_psn(), psn)) break;
    qp_.complete_send(context, wqe, IBV_WC_WR_FLUSH_ERR);
  }
  fail_oldest(context, status);
}

bool Requester::acknowledge_before(TransportContext& context, Psn end) {
  if (psns_between(una_, end) > kMaxOpenPsns) return true;  // `end` is before una_
  bool whole = true;
  Psn una = una_;
  Lsn lsn = flow_.acknowledged;
  while (!(una == end)) {
    const SendWqe& oldest = qp_.send_queue.at(qp_.send_queue.head());
    if (oldest.needs_response()) {  // a READ or an atomic is acknowledged by its response only
      whole = false;
      // The requests after it have been executed. They complete when the response has arrived.
      if (is_before(acknowledged_end_, end)) {
        acknowledged_end_ = end;
        // The peer makes progress, although the response has not arrived.
        retries_left_ = qp_.attributes.retry_count;
      }
      break;
    }
    const Psn next = oldest.first_psn + oldest.packets;
    if (psns_between(una, end) < psns_between(una, next)) {
      lsn = oldest.first_lsn + uint64_t{psns_between(oldest.first_psn, end)} * qp_.attributes.path_mtu;
      una = end;
      break;
    }
    lsn = oldest.first_lsn + oldest.length;
    una = next;
    complete_oldest(context);
  }
  if (una == una_) return whole;
  newly_acknowledged_ += psns_between(una_, una);
  advance_una(una, lsn);
  record_progress(context);
  return whole;
}

void Requester::advance_una(Psn to, Lsn lsn) {
  const uint32_t distance = psns_between(una_, to);
  if (rtt_sample_ == RttSample::kRunning && psns_between(una_, timed_psn_) < distance)
    rtt_sample_ = RttSample::kTaken;
  if (SackBoard* board = sack_board(); board != nullptr) board->remove(una_, to);
  una_ = to;
  flow_.acknowledged = lsn;
  // Keeps `covered` from falling so far below una_ that PSN wrap-around would make it appear later than una_.
  if (session() != nullptr && is_before(session()->repair.covered, una_)) session()->repair.covered = una_;
  if (is_before(acknowledged_end_, una_)) acknowledged_end_ = una_;
}

SendWqe* Requester::due_request(TransportContext& context, const FrameView& view) {
  uint32_t index = qp_.send_queue.head();
  const uint32_t posted = qp_.send_queue.posted();
  while (index != posted && qp_.send_queue.at(index).started && !qp_.send_queue.at(index).needs_response())
    ++index;
  if (index == posted || !qp_.send_queue.at(index).started ||
      is_before(view.psn(), qp_.send_queue.at(index).first_psn)) {
    on_wrong_opcode(context, view.psn());
    return nullptr;
  }
  SendWqe& wqe = qp_.send_queue.at(index);
  const Psn expected = wqe.first_psn + wqe.responses;
  if (is_before(view.psn(), expected)) {
    context.counters.add(Counter::kResponsesDuplicate);
    note_peer_busy(context.now);
    repeat_read_acknowledgment();
    return nullptr;
  }
  acknowledge_before(context, wqe.first_psn);  // the responder has executed everything before it
  if (view.psn() == expected) return &wqe;
  context.counters.add(Counter::kResponsesOutOfOrder);
  note_peer_busy(context.now);
  retry_gap(context);
  return nullptr;
}

// A response with data to a SEND or WRITE (IBTA 11.6.2, Bad Response Error).
void Requester::on_wrong_opcode(TransportContext& context, Psn psn) {
  uint32_t index = qp_.send_queue.head();
  const auto lies_before = [&](const SendWqe& wqe) {
    return wqe.is_local() || !is_before(psn, wqe.first_psn + wqe.packets);
  };
  while (lies_before(qp_.send_queue.at(index))) ++index;
  acknowledge_before(context, qp_.send_queue.at(index).first_psn);
  fail_oldest(context, IBV_WC_BAD_RESP_ERR);
}

void Requester::on_atomic_response(TransportContext& context, const FrameView& view) {
  const SendWqe* atomic = due_request(context, view);
  if (atomic == nullptr) return;
  if (!atomic->is_atomic() || aeth_kind(view.aeth().syndrome) != AethKind::kAck) {
    fail_oldest(context, IBV_WC_BAD_RESP_ERR);
    return;
  }
  const uint64_t original = view.atomic_ack().original.get();
  if (!scatter_bytes(context.memory, qp_.config.pd, atomic->pieces(),
                     {reinterpret_cast<const uint8_t*>(&original), sizeof original})) {
    fail_oldest(context, IBV_WC_LOC_PROT_ERR);
    return;
  }
  context.counters.add(Counter::kResponsesReceived);
  responses_.received += sizeof original;
  acknowledge_response(view.psn());
  advance_una(view.psn() + 1, atomic->first_lsn + sizeof(AtomicEth));
  complete_oldest(context);
  record_progress(context);
  acknowledge_before(context, acknowledged_end_);
}

uint8_t* Requester::payload_target(const MemoryTable& memory, const FrameView& view) {
  if (view.opcode->position != Position::kMiddle) return nullptr;
  if (qp_.state() != IBV_QPS_RTS && qp_.state() != IBV_QPS_SQD) return nullptr;
  // Only if its READ is the oldest request; on_response() processes all other cases.
  const uint32_t index = qp_.send_queue.head();
  if (index == qp_.send_queue.posted()) return nullptr;
  const SendWqe& read = qp_.send_queue.at(index);
  if (!read.started || !read.is_read() || !(view.psn() == read.first_psn + read.responses)) return nullptr;
  if (!is_before(view.psn(), sent_end_) || read.responses == 0 || read.responses + 1 >= read.packets)
    return nullptr;
  const uint32_t mtu = qp_.attributes.path_mtu;
  if (view.payload_length != mtu) return nullptr;
  return one_piece(memory, qp_.config.pd, read.pieces(), static_cast<uint64_t>(read.responses) * mtu, mtu);
}

void Requester::on_read_response(TransportContext& context, const FrameView& view, const rte_mbuf* frame) {
  SendWqe* request = due_request(context, view);
  if (request == nullptr) return;
  SendWqe& read = *request;  // or a flush or an atomic write
  if (read.is_atomic()) {
    fail_oldest(context, IBV_WC_BAD_RESP_ERR);
    return;
  }

  const uint32_t mtu = qp_.attributes.path_mtu;
  const uint64_t offset = static_cast<uint64_t>(read.responses) * mtu;
  const auto due =
      read.is_read() ? static_cast<uint32_t>(std::min<uint64_t>(mtu, read.length - offset)) : uint32_t{0};
  const bool last = read.responses + 1 == read.packets;
  // The first packet of the data has a FIRST or ONLY opcode. A later one may have it too: in the response to a repeated
  // request.
  const bool right_kind =
      view.opcode->ends_message() == last && (read.responses > 0 || view.opcode->starts_message()) &&
      (!view.opcode->has(Header::kAeth) || aeth_kind(view.aeth().syndrome) == AethKind::kAck);
  if (!right_kind || view.payload_length != due) {
    fail_oldest(context, IBV_WC_BAD_RESP_ERR);
    return;
  }
  if (due > 0 && !view.placed &&
      !scatter(context.memory, qp_.config.pd, read.pieces(), offset, frame, view.payload_offset, due)) {
    fail_oldest(context, IBV_WC_LOC_PROT_ERR);
    return;
  }
  context.counters.add(Counter::kResponsesReceived);
  ++read.responses;
  responses_.received += due;
  advance_una(view.psn() + 1, read.first_lsn + lsn_bytes(read));
  acknowledge_response(view.psn());
  if (last) complete_oldest(context);
  record_progress(context);
  if (last) acknowledge_before(context, acknowledged_end_);
}

// Schedules an acknowledgment of all responses up to this one for the next transmit().
void Requester::acknowledge_response(Psn psn) {
  if (session() == nullptr) return;
  session()->read_acks.last = psn;
  session()->read_acks.any = true;
  repeat_read_acknowledgment();
}

void Requester::repeat_read_acknowledgment() {
  if (session() == nullptr || !session()->read_acks.any) return;
  session()->read_acks.due = session()->takes(Capability::kReadAcks);
}

void Requester::complete_oldest(TransportContext& context) {
  const SendWqe& wqe = qp_.send_queue.at(qp_.send_queue.head());
  if (wqe.needs_response()) {
    ++newly_acknowledged_;
    --reads_outstanding_;
    read_bytes_outstanding_ -= wqe.length;
    if (session() != nullptr) ++session()->read_acks.completed;
  }
  qp_.complete_send(context, wqe, IBV_WC_SUCCESS);
  retire_local(context);
}

void Requester::record_progress(TransportContext& context) {
  const Nanos now = context.now;
  retries_left_ = qp_.attributes.retry_count;
  rnr_retries_left_ = qp_.attributes.rnr_retry;
  gap_retried_ = 0;
  begin_silence();
  if (recovery_.probing() != LossRecovery::Probing::kNone) [[unlikely]]
    check_retransmission(now);
  // The packets that the cursor was moved back for may have been acknowledged since.
  if (static_cast<int32_t>(cursor_.index - qp_.send_queue.head()) < 0 || is_before(psn_at(cursor_), una_))
    cursor_ = oldest();
  if (rtt_sample_ == RttSample::kTaken) {
    rtt_sample_ = RttSample::kNone;
    if (!rtt_is_echoed()) note_rtt(now - timed_at_);
  } else if (rtt_sample_ == RttSample::kSilence) [[unlikely]] {
    rtt_sample_ = RttSample::kNone;
    if (context.peer_activity != nullptr)
      context.peer_activity->note_silence(qp_.attributes.path.destination_ip, now - timed_at_, now);
  }
  if (phase_ == Phase::kRnrWait) return;
  const Nanos whole = timeout();
  deadline_ = outstanding() && whole != kNever ? now + whole : kNever;
  recovery_.record_progress();
  if (context.peer_activity != nullptr) context.peer_activity->note(qp_.attributes.path.destination_ip, now);
  schedule_tail_probe(now);
}

// Restarts the time-out. The responder sends the data of earlier requests first, so the response to a repeated request
// is not late yet.
void Requester::note_peer_busy(Nanos now) {
  if (sack_board() != nullptr || phase_ == Phase::kRnrWait || deadline_ == kNever || !outstanding()) return;
  deadline_ = now + timeout();
  schedule_tail_probe(now);
}

void Requester::note_rtt(Nanos sample) {
  flow_.note_rtt(sample);
  recovery_.note_rtt(sample, flow_.least_rtt, ack_timeout(qp_.attributes.timeout));
}

// All packets before una_ are acknowledged. cursor_ is after the retransmitted packets.
void Requester::check_retransmission(Nanos now) {
  using enum LossRecovery::Probing;
  if (!outstanding()) return recovery_.set_probing(kNone);
  const bool beyond =
      static_cast<int32_t>(cursor_.index - qp_.send_queue.head()) < 0 || is_before(psn_at(cursor_), una_);
  // una_ is within a READ whose responses are arriving.
  if (!beyond && is_before(una_, psn_at(cursor_))) return;
  // If una_ is beyond the retransmitted packets, or was acknowledged in less than a round trip, the acknowledgment is
  // for the first copies.
  const bool early = now - rewound_at_ < recovery_.earliest_acknowledgment();
  if (beyond || early) {
    recovery_.note_late_acknowledgments(beyond);
    cursor_ = end_of_sent();
    rewound_to_ = una_;
    return;
  }
  if (recovery_.probing() == kFirst) {
    recovery_.set_probing(kSecond);
    rewound_at_ = now;
    rewound_to_ = una_;
    return;
  }
  recovery_.note_missing();
}

bool Requester::rtt_is_echoed() const {
  return session() != nullptr && (session()->data_types() & bit_of(ExtensionType::kTimestamp)) != 0;
}

void Requester::retry(TransportContext& context, Psn from, Psn end, trace::Reason reason) {
  if (retries_left_ == 0) {
    fail_oldest(context, IBV_WC_RETRY_EXC_ERR);
    return;
  }
  --retries_left_;
  begin_silence();
  if (SendGate* const here = gate(); here != nullptr) [[unlikely]]
    here->owes_repair = true;
  if (sack_board() != nullptr) {
    session()->repair.covered = sent_end_;
    start_repair(from, end, reason);
  } else {
    trace::retransmission_started(qp_.number().value(), una_.value(), reason);
    rewind();
    if (flow_.least_rtt == kNever || context.now - rewound_at_ >= flow_.least_rtt) {
      rewound_at_ = context.now;
      rewinds_ = 0;
    }
    rewound_to_ = una_;
    ++rewinds_;
  }
  if (timeout() != kNever) deadline_ = context.now + timeout();
  schedule_tail_probe(context.now);
}

bool Requester::recently_rewound(Nanos now, Psn from) const {
  if (flow_.least_rtt == kNever || now - rewound_at_ >= flow_.least_rtt) return false;
  return from == rewound_to_ || rewinds_ >= kMaxRewindsPerRtt;
}

void Requester::retry_gap(TransportContext& context) {
  if (has_retried_gap()) return;
  if (phase_ == Phase::kRnrWait || psn_at(cursor_) == una_) return;
  if (sack_board() == nullptr && recently_rewound(context.now, una_)) return;
  gap_retried_ = 1;
  gap_psn_ = una_;
  const SendWqe& oldest = qp_.send_queue.at(qp_.send_queue.head());
  note_loss();
  retry(context, una_, oldest.last_psn() + 1, trace::Reason::kGap);
  // The data of the following READs is in flight, so only the oldest one is requested again.
  if (sack_board() == nullptr && qp_.state() != IBV_QPS_ERR && oldest.is_read()) probe_oldest(context.now);
}

void Requester::on_window_message(TransportContext& context, const ExtensionView& block) {
  session()->take_feedback(context, block, Direction::kRequests, flow_);
}

bool Requester::has_in_flight(const OpcodeInfo& sampled, Psn psn) const {
  if (sampled.operation == Operation::kProbeRequest) return session()->probes.sent != kNever;
  return sampled.is_request() && sent_before(psn);
}

void Requester::on_probe_response(TransportContext& context, const FrameView& view,
                                  const ExtensionView& block) {
  ExtensionSession::Probes& probes = session()->probes;
  const roci::Probe& probe = view.probe();
  const auto sent = static_cast<uint64_t>(probes.sent.count());
  if (probes.sent == kNever || probe.id.get() != probes.id || probe.sent.get() != sent) {
    context.counters.add(Counter::kResponsesGhost);
    return;
  }
  const uint64_t held = (view.probe_times().answered.get() - view.probe_times().received.get()) *
                        session()->terms.peer_time_unit / 1000;
  const auto whole = static_cast<uint64_t>((context.now - probes.sent).count());
  probes.sent = kNever;
  if (held > whole) {
    context.counters.add(Counter::kFeedbackImpossible);
    return;
  }
  flow_.note_rtt(Nanos{static_cast<int64_t>(whole - held)}, Nanos{static_cast<int64_t>(held)});
  if (qp_.gates != nullptr) {
    ++qp_.gates->probes;
    qp_.gates->probe_rtt = Nanos{static_cast<int64_t>(whole - held)};
    qp_.gates->probe_hold = Nanos{static_cast<int64_t>(held)};
  }
  if (block.has(ExtensionType::kIntEcho)) session()->take_hops(context, block, HopsOf::kProbe);
}

}  // namespace roci
