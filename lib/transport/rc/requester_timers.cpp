// Timers of the requester: retransmission time-out (IBTA 9.7.6.1.3), wait after an RNR NAK, and tail probes.
#include <algorithm>
#include <bit>

#include "base/trace_points.hpp"
#include "transport/queue_pair/queue_pair_core.hpp"
#include "transport/rc/requester.hpp"
#include "wire/headers/aeth.hpp"

namespace roci {
namespace {

// Delay of a time-out until waiting frames have been received or sent.
constexpr Nanos kCheckInterval{10'000};
// Without a session: number of time-outs in a row that do not expire because frames to the peer are unread.
constexpr uint8_t kMaxExcuses = 31;

}  // namespace

Nanos Requester::timeout() const {
  const Nanos attribute = ack_timeout(qp_.attributes.timeout);
  if (sack_board() == nullptr) return recovery_.timeout(attribute);
  return attribute == kNever || flow_.rtt == kNever ? attribute : std::max(attribute, 2 * flow_.rtt);
}

void Requester::on_deadline(TransportContext& context) {
  if (qp_.state() != IBV_QPS_RTS && qp_.state() != IBV_QPS_SQD) return;
  if (context.now < deadline_) {
    if (context.now < tail_probe_at_) return;
    // A second copy would wait in the same queue as the first one.
    if (wait_for_port(context.unsent) != PortWait::kNone ||
        (context.peers != nullptr &&
         context.peers->is_busy(qp_.attributes.path.destination_mac, context.now)))
      return schedule_tail_probe(context.now);
    return send_tail_probe(context);
  }
  if (phase_ == Phase::kRnrWait) {
    phase_ = Phase::kNew;
    deadline_ = kNever;  // set again when the packet is sent
    trace::retransmission_started(qp_.number().value(), una_.value(), trace::Reason::kRnr);
    return;
  }
  // The acknowledgment may have arrived, or the packet may not have been sent.
  const PortWait port = wait_for_port(context.unsent);
  if (context.frames_wait || port == PortWait::kWaits) {
    deadline_ = context.now + kCheckInterval;
    return;
  }
  if (port == PortWait::kAccepted) {
    deadline_ =
        context.now +
        (flow_.rtt == kNever ? timeout() : std::min(timeout(), usual_silence(sack_board() != nullptr)));
    return;
  }
  // The gate has not permitted the retransmission yet, so it cannot have been acknowledged.
  if (const SendGate* const here = gate();
      here != nullptr && here->owes_repair && here->opens_at() != kNever) {
    deadline_ = here->opens_at() + timeout();
    return;
  }
  if (context.peers != nullptr && outstanding()) {
    if (context.peers->is_absent(qp_.attributes.path.destination_mac)) return on_peer_exit(context);
    if (peer_was_not_scheduled(context)) return;
  }
  context.counters.add(Counter::kTimeouts);
  begin_silence();
  if (SendGate* const here = gate(); here != nullptr) [[unlikely]]
    ++here->timeouts;
  if (rtt_sample_ != RttSample::kSilence) {
    rtt_sample_ = RttSample::kSilence;
    timed_at_ = context.now - timeout();
  }
  recovery_.note_timeout();
  repeat_read_acknowledgment();
  const bool waits = peer_is_slow(context);
  const bool selective = sack_board() != nullptr;
  if (waits) {
    deadline_ = context.now + timeout();
    schedule_tail_probe(context.now);
    if (selective) {
      session()->repair.covered = sent_end_;
      start_repair(una_, sent_end_, trace::Reason::kTimeout);
    }
  } else {
    retry(context, una_, sent_end_, trace::Reason::kTimeout);
    if (qp_.state() == IBV_QPS_ERR) return;
  }
  if (selective) return;
  // While the peer is only slow, all data of a long READ would be sent twice, and each further copy of the oldest packet
  // would wait in the same queue.
  if (waits && (is_long_read() || !copy_is_due(context.now))) return;
  // Otherwise retry() has reported it.
  if (waits) trace::retransmission_started(qp_.number().value(), una_.value(), trace::Reason::kTimeout);
  probe_oldest(context.now);
}

// Whether a time-out uses up no retry, because the peer acknowledges other queue pairs: up to three times in a row, and
// as long as this silence is not twice as long as the longest one that the peer has ended.
bool Requester::peer_is_slow(const TransportContext& context) {
  const IpAddress& peer = qp_.attributes.path.destination_ip;
  if (context.peer_activity == nullptr ||
      !context.peer_activity->acknowledged_since(peer, context.now - timeout()))
    return false;
  return context.now - timed_at_ < 2 * context.peer_activity->longest_silence(peer, context.now) ||
         recovery_.may_wait();
}

// Whether the oldest packet of a slow peer is sent again after this time-out: after 1, 2, 4, 8, 16, 32, 48… time-outs.
bool Requester::copy_is_due(Nanos now) const {
  constexpr uint64_t kRarest = 16;
  const auto timeouts = static_cast<uint64_t>((now - timed_at_ + timeout() / 2) / timeout());
  return std::has_single_bit(timeouts) || timeouts % kRarest == 0;
}

void Requester::on_peer_exit(TransportContext& context) {
  if (outstanding() && (qp_.state() == IBV_QPS_RTS || qp_.state() == IBV_QPS_SQD))
    fail_oldest(context, IBV_WC_RETRY_EXC_ERR);
}

// Whether the time-out continues because the peer's process could not answer for a part of it. Without an extension
// session there is no memory to account for that part, and the time-out starts again: up to kMaxExcuses times if the
// peer's process runs and has not read the packet.
bool Requester::peer_was_not_scheduled(TransportContext& context) {
  const PeerTime peer = context.peers->time_of(qp_.attributes.path.destination_mac, context.now);
  const Nanos whole = timeout();
  Nanos rest = whole;
  if (session() != nullptr) {
    rest = session()->silence.rest(una_, peer, whole, context.now);
  } else if (PeerSilence::lost_none(peer, whole, context.now)) {
    rest = Nanos{0};
  } else if (peer.away_at < context.now - whole) {  // frames to the peer are unread, and it runs
    if (excuses_ == kMaxExcuses) {
      rest = Nanos{0};
    } else if (peer.read_until >= context.now - (excuses_ + 1) * whole) {
      excuses_ = kMaxExcuses;  // it has read the packet: one more time-out for the response
    } else {
      ++excuses_;
    }
  }
  if (rest == Nanos{0}) return false;
  deadline_ = context.now + rest;
  schedule_tail_probe(context.now);
  return true;
}

void Requester::note_resumed(Nanos now) {
  if (deadline_ == kNever || phase_ == Phase::kRnrWait) return;
  if (timeout() != kNever) deadline_ = std::max(deadline_, now + timeout());
  schedule_tail_probe(now);
}

Nanos Requester::deadline() const {
  Nanos next = deadline_;
  if (next != kNever) next = std::min(next, tail_probe_at_);
  if (const SendGate* const here = gate(); here != nullptr) next = std::min(next, here->opens_at());
  return next;
}

// The peer may be slow: the silence before each probe is twice as long as that before the previous one.
void Requester::schedule_tail_probe(Nanos now) {
  tail_probe_at_ = kNever;
  if (flow_.rtt == kNever || phase_ == Phase::kRnrWait || deadline_ == kNever) return;
  const bool selective = sack_board() != nullptr;
  if (!selective && is_long_read()) return;
  const Nanos silence = usual_silence(selective) * (1 << recovery_.tail_probes);
  if (now + silence < deadline_) tail_probe_at_ = now + silence;
}

// Whether frames wait for the port that were staged before this timer expired for the first time, or the oldest packet
// has not been sent again. Once the port has accepted them, the timer starts again, since it counts from the
// transmission. Frames that were staged later do not delay it.
Requester::PortWait Requester::wait_for_port(const UnsentFrames& unsent) {
  switch (port_wait_) {
    case PortWait::kNone:
      if (unsent.any()) {
        port_wait_ = PortWait::kWaits;
        unsent_end_ = unsent.end;
      }
      return port_wait_;
    case PortWait::kWaits:
      if (unsent.any() && has_oldest_to_send()) {
        unsent_end_ = unsent.end;
      } else if (!unsent.any_before(unsent_end_)) {
        port_wait_ = PortWait::kAccepted;
      }
      return port_wait_;
    default:
      return PortWait::kNone;
  }
}

// Whether the oldest packet is to be sent again and has not been.
bool Requester::has_oldest_to_send() {
  const bool repairs = phase_ == Phase::kRepair && session() != nullptr && session()->repair.started;
  const Cursor& next = repairs ? session()->repair.next : cursor_;
  return static_cast<int32_t>(next.index - qp_.send_queue.head()) < 0 || !is_before(una_, psn_at(next));
}

void Requester::send_tail_probe(TransportContext& context) {
  context.counters.add(Counter::kTailProbes);
  begin_silence();
  repeat_read_acknowledgment();
  if (sack_board() == nullptr) {
    trace::retransmission_started(qp_.number().value(), una_.value(), trace::Reason::kTailProbe);
    probe_oldest(context.now);
  } else if (phase_ != Phase::kRepair) {
    start_repair(una_, una_ + 1, trace::Reason::kTailProbe);
  }
  if (recovery_.tail_probes < kMaxProbesInSilence) ++recovery_.tail_probes;
  schedule_tail_probe(context.now);
}

bool Requester::is_long_read() const {
  const SendWqe& oldest = qp_.send_queue.at(qp_.send_queue.head());
  return oldest.is_read() && oldest.packets - oldest.responses > kMaxProbedResponses;
}

void Requester::probe_oldest(Nanos now) {
  rewind();
  if (SendGate* const here = gate(); here != nullptr) [[unlikely]]
    here->owes_repair = true;
  recovery_.begin_probing(una_ == rewound_to_);
  rewound_at_ = now;
  rewound_to_ = una_;
}

}  // namespace roci
