// The timers of the requester: the retransmission time-out (IBTA 9.7.6.1.3), the wait after an RNR NAK, and tail probes.
#include <algorithm>

#include "transport/queue_pair_core.hpp"
#include "transport/requester.hpp"

namespace roci {
namespace {

// Until the frames that have arrived are received.
constexpr Nanos kLookAgain{10'000};

}  // namespace

Nanos Requester::timeout() const { return ack_timeout(qp_.attributes.timeout); }

void Requester::on_deadline(TransportContext& context) {
  if (qp_.state() != IBV_QPS_RTS && qp_.state() != IBV_QPS_SQD) return;
  if (context.now < deadline_) {
    if (session() == nullptr || context.now < session()->tail_probe.at) return;
    // Another copy would wait behind the first one.
    if (context.peers != nullptr && context.peers->is_busy(qp_.attributes.path.destination_mac, context.now))
      return schedule_tail_probe(context.now);
    return send_tail_probe(context);
  }
  if (waits_for_rnr_) {
    waits_for_rnr_ = false;
    deadline_ = kNever;  // armed again when the packet goes out
    return;
  }
  if (context.frames_wait) {  // the answer may be among them
    deadline_ = context.now + kLookAgain;
    return;
  }
  // Who was not allowed to speak cannot have been answered.
  if (const SendGate* const here = gate();
      here != nullptr && here->owes_repair && here->opens_at() != kNever) {
    deadline_ = here->opens_at() + timeout();
    return;
  }
  if (context.peers != nullptr && outstanding()) {
    if (context.peers->is_absent(qp_.attributes.path.destination_mac)) return on_peer_exit(context);
    if (peer_had_no_time(context)) return;
  }
  context.counters.add(Counter::kTimeouts);
  if (SendGate* const here = gate(); here != nullptr) [[unlikely]]
    ++here->timeouts;
  retry(context, una_, sent_end_);
}

// The peer's process has exited, so nothing will be answered.
void Requester::on_peer_exit(TransportContext& context) {
  if (outstanding() && (qp_.state() == IBV_QPS_RTS || qp_.state() == IBV_QPS_SQD))
    fail_oldest(context, IBV_WC_RETRY_EXC_ERR);
}

// Whether the time-out continues because the peer's process could not answer for a part of it. Without extensions there is no room
// to count that part, and the time-out starts again.
bool Requester::peer_had_no_time(TransportContext& context) {
  const PeerTime peer = context.peers->time_of(qp_.attributes.path.destination_mac, context.now);
  const Nanos whole = timeout();
  if (session() == nullptr) {
    if (PeerSilence::lost_none(peer, whole, context.now)) return false;
    deadline_ = context.now + whole;
    return true;
  }
  const Nanos rest = session()->silence.rest(una_, peer, whole, context.now);
  if (rest == Nanos{0}) return false;
  deadline_ = context.now + rest;
  schedule_tail_probe(context.now);
  return true;
}

void Requester::note_resumed(Nanos now) {
  if (deadline_ == kNever || waits_for_rnr_) return;
  if (timeout() != kNever) deadline_ = std::max(deadline_, now + timeout());
  schedule_tail_probe(now);
}

Nanos Requester::deadline() const {
  Nanos next = deadline_;
  if (session() != nullptr && next != kNever) next = std::min(next, session()->tail_probe.at);
  if (const SendGate* const here = gate(); here != nullptr) next = std::min(next, here->opens_at());
  return next;
}

// The peer may be slow and not deaf: each probe of a silence waits twice as long as the one before.
void Requester::schedule_tail_probe(Nanos now) {
  if (session() == nullptr) return;
  ExtensionSession::TailProbe& probe = session()->tail_probe;
  probe.at = kNever;
  if (sack_board() == nullptr || flow_.rtt == kNever || waits_for_rnr_ || deadline_ == kNever) return;
  const Nanos silence = std::max(kRoundTripsOfSilence * flow_.rtt, kLeastSilence) * (1 << probe.sent);
  if (now + silence < deadline_) probe.at = now + silence;
}

void Requester::send_tail_probe(TransportContext& context) {
  context.counters.add(Counter::kTailProbes);
  if (!repair_left_) start_repair(una_, una_ + 1);
  uint8_t& sent = session()->tail_probe.sent;
  if (sent < kMostProbesInSilence) ++sent;
  schedule_tail_probe(context.now);
}

}  // namespace roci
