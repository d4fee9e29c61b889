#include "engine/transmit/transmit_scheduler.hpp"

#include <algorithm>
#include <utility>

namespace roci {
namespace {

// Interval at which a queue pair that requires extensions checks for its peer's capabilities.
constexpr Nanos kPeerWait{5'000'000};

}  // namespace

TransmitScheduler::TransmitScheduler(const WorkerContext& context, const WorkerParts& parts)
    : parts_(parts),
      flow_control_(context.flow_control),
      groups_(context.groups),
      steering_(context.steering),
      pool_(context.tx_pool->get()),
      peer_presence_(context.peers()),
      placement_(context.placement()),
      quantum_(context.packets_per_turn != 0 ? context.packets_per_turn : kQuantum),
      quanta_a_round_(context.packets_per_turn != 0 ? 1 : kQuantaPerRound),
      pausable_(context.flow_control.enabled()),
      addresses_(parts.neighbors, parts.index,
                 context.port.capabilities().needs_icrc ? RoceWriter::Contents::kWhole
                                                        : RoceWriter::Contents::kWithoutIcrc) {}

void TransmitScheduler::link(AttachedQueuePair& qp, QueuePairList& list) {
  qp.ready = true;
  qp.next_ready = nullptr;
  qp.previous_ready = list.last;
  (list.last == nullptr ? list.first : list.last->next_ready) = &qp;
  list.last = &qp;
  ++list.count;
}

void TransmitScheduler::link_first(AttachedQueuePair& qp, QueuePairList& list) {
  qp.ready = true;
  qp.next_ready = list.first;
  qp.previous_ready = nullptr;
  (list.first == nullptr ? list.last : list.first->previous_ready) = &qp;
  list.first = &qp;
  ++list.count;
}

void TransmitScheduler::unlink(AttachedQueuePair& qp, QueuePairList& list) {
  (qp.previous_ready == nullptr ? list.first : qp.previous_ready->next_ready) = qp.next_ready;
  (qp.next_ready == nullptr ? list.last : qp.next_ready->previous_ready) = qp.previous_ready;
  --list.count;
  qp.ready = false;
}

void TransmitScheduler::remove(AttachedQueuePair& qp) {
  take_doorbells();  // empties the stack, which may contain the queue pair
  count_waiting(qp, false);
  withdraw_grants(qp);
  timers_.cancel(qp);
  qp.neighbor = NeighborRef();
  stop_waiting(qp);
  if (qp.paused != 0) end_pause_of(qp);
  if (qp.ready) unlink(qp, ready_);
  if (qp.acknowledges_first) {
    const auto end = acknowledging_.begin() + acknowledging_count_;
    const auto at = std::find(acknowledging_.begin(), end, &qp);
    std::move(at + 1, end, at);
    --acknowledging_count_;
  }
}

void TransmitScheduler::acknowledge_first(AttachedQueuePair& qp) {
  if (qp.acknowledges_first || acknowledging_count_ == kAcknowledging || !qp.core.owes_acknowledgment())
    return;
  qp.acknowledges_first = true;
  acknowledging_[acknowledging_count_++] = &qp;
}

// Whether nothing but the ready queue pairs delays an acknowledgment: no pause (PFC), no negotiation of extensions, no
// address resolution.
bool TransmitScheduler::may_acknowledge(TransportContext& context, AttachedQueuePair& qp) {
  if (qp.paused != 0 || parts_.extensions.negotiation_of(qp) != PeerExtensions::Negotiation::kYes)
    return false;
  if (stopped_ != 0 && is_stopped(flow_control_.priority_of(qp.core.sent_path()))) return false;
  return refresh_path(context, qp);
}

// Queue pairs for which the port has no space keep their place.
void TransmitScheduler::send_acknowledgments(TransportContext& context) {
  uint32_t done = 0;
  for (; done < acknowledging_count_ && !parts_.stage.port_blocked(); ++done) {
    AttachedQueuePair& qp = *acknowledging_[done];
    if (may_acknowledge(context, qp)) qp.core.acknowledge(context);
    if (parts_.stage.port_blocked()) break;
    qp.acknowledges_first = false;
  }
  const auto begin = acknowledging_.begin();
  std::move(begin + done, begin + acknowledging_count_, begin);
  acknowledging_count_ -= done;
}

void TransmitScheduler::ring(AttachedQueuePair& qp) {
  // While `rung` is set, the worker has not yet checked the queue, and will do so.
  if (qp.rung.exchange(true, std::memory_order_seq_cst)) return;
  qp.next_rung = rung_.load(std::memory_order_relaxed);
  while (
      !rung_.compare_exchange_weak(qp.next_rung, &qp, std::memory_order_seq_cst, std::memory_order_relaxed)) {
  }
}

bool TransmitScheduler::take_rung() {
  AttachedQueuePair* stack = rung_.exchange(nullptr, std::memory_order_acquire);
  AttachedQueuePair* in_order = nullptr;
  while (stack != nullptr) in_order = std::exchange(stack, std::exchange(stack->next_rung, in_order));
  while (in_order != nullptr) {
    AttachedQueuePair& qp = *in_order;
    in_order = qp.next_rung;
    // Cleared before the queue is checked, with an exchange: posts of threads that found `rung` set are then visible.
    qp.rung.exchange(false, std::memory_order_seq_cst);
    make_ready(qp);
  }
  return true;
}

bool TransmitScheduler::run_timers(TransportContext& context) {
  return timers_.advance(context.now, [&](Timer& timer) {
    auto& qp = static_cast<AttachedQueuePair&>(timer);
    if (stopped_ != 0 && pause_if_stopped(qp)) return;  // the queue pair could not send at this time
    qp.core.on_deadline(context);
    parts_.control.touch(qp.core);
    make_ready(qp);
  }) > 0;
}

bool TransmitScheduler::serve_ready(TransportContext& context) {
  if (parts_.loopback.full()) [[unlikely]]
    parts_.stage.block();  // looped back frames are received first
  if (acknowledging_count_ > 0) [[unlikely]]
    send_acknowledgments(context);
  bool worked = false;
  // `ahead` is some turns ahead of the served queue pair, for prefetching.
  AttachedQueuePair* ahead =
      parts_.queue_pairs.size() > WorkerParts::kCachedQueuePairs ? ready_.first : nullptr;
  const auto fetch = [&ahead] {
    if (ahead == nullptr) return;
    ahead->prefetch();
    ahead = ahead->next_ready;
  };
  for (uint32_t i = 0; i < kTurnsAhead; ++i) fetch();
  const uint32_t quanta = std::max(1U, quanta_a_round_ / std::max(ready_.count, 1U));
  const bool more_than_a_round = ready_.count > kTurnsPerRound;
  for (uint32_t turns = std::min(ready_.count, kTurnsPerRound); turns > 0 && !parts_.stage.port_blocked();
       --turns) {
    fetch();
    AttachedQueuePair& qp = *ready_.first;
    unlink(qp, ready_);
    if (stopped_ != 0 && pause_if_stopped(qp)) continue;
    worked |= serve(context, qp, quanta);
  }
  if (refused_.count > 0) [[unlikely]]
    return_refused();
  // If some queue pairs have not had their turn, there may be work although no served queue pair had any.
  return worked || (more_than_a_round && !parts_.stage.port_blocked());
}

bool TransmitScheduler::serve(TransportContext& context, AttachedQueuePair& qp, uint32_t quanta) {
  TransmitStage& stage = parts_.stage;
  const uint64_t sent_before = parts_.counters.get(Counter::kTxFrames);
  parts_.extensions.follow(qp, false);
  const auto negotiation = parts_.extensions.negotiation_of(qp);
  const bool waits_for_peer = negotiation == PeerExtensions::Negotiation::kNotYet;
  ControlledQueuePair* const controlled = CongestionControl::of(qp.core);
  if (controlled != nullptr) controlled->begin_turn();
  if (negotiation == PeerExtensions::Negotiation::kRefused ||
      (controlled != nullptr && !waits_for_peer && !parts_.control.prepare(*controlled, context.now)))
    qp.core.fail_for_good(context);
  const bool reachable = !waits_for_peer && refresh_path(context, qp);
  const ibv_qp_state state = qp.core.state();
  if (state == IBV_QPS_ERR) withdraw_grants(qp);
  // In these states, some of the work needs no peer.
  const bool more =
      (reachable || state == IBV_QPS_ERR || state == IBV_QPS_SQD) && transmit(context, qp, quanta);
  if (controlled != nullptr) parts_.control.after_turn(*controlled, context.now);
  if (const bool waits = qp.core.waits_to_send(); waits != qp.waits_to_send) count_waiting(qp, waits);
  if (addresses_.take_pending()) wait_for_neighbor(qp);
  if (stopped_to_ != 0) pause(qp, std::exchange(stopped_to_, uint8_t{0}) - 1U);
  const bool sent = parts_.counters.get(Counter::kTxFrames) != sent_before;
  if (more) {
    // A queue pair that found the port or its receiver full has not had its turn. At
    // the end of the list it would find the same in each round.
    if (!stage.blocked() || sent || qp.ready) {
      make_ready(qp);
    } else if (stage.receiver_full()) {
      link(qp, refused_);
    } else {
      link_first(qp, ready_);
    }
  }
  if (waits_for_peer) {
    timers_.schedule(qp, context.now + kPeerWait);
  } else {
    set_timer(qp);
  }
  return sent || (more && !stage.blocked());
}

// Queue pairs whose receiver was full are first in the next round, in their order. If there are many, they are last, so
// that other queue pairs have their turns.
void TransmitScheduler::return_refused() {
  QueuePairList& before = refused_.count <= kTurnsPerRound / 2 ? refused_ : ready_;
  QueuePairList& behind = &before == &refused_ ? ready_ : refused_;
  if (behind.count == 0) {
    behind = before;
  } else if (before.count > 0) {
    before.last->next_ready = behind.first;
    behind.first->previous_ready = before.last;
    behind.first = before.first;
    behind.count += before.count;
  }
  ready_ = behind;
  refused_ = QueuePairList{};
}

// Returns whether the queue pair has more to send.
bool TransmitScheduler::transmit(TransportContext& context, AttachedQueuePair& qp, uint32_t quanta) {
  parts_.stage.begin_turn();
  while (qp.core.transmit(context, quantum_)) {
    if (--quanta == 0 || parts_.stage.blocked() || parts_.stage.turn_bytes() >= kBytesPerTurn) return true;
  }
  return false;
}

// Returns whether the peer is reachable. If not, the queue pair waits until the neighbor table changes.
bool TransmitScheduler::refresh_path(TransportContext& context, AttachedQueuePair& qp) {
  if (!is_connected(qp.core.config.type)) return true;  // each request has its own path, or is a whole frame
  const ibv_qp_state state = qp.core.state();
  const bool connected = state == IBV_QPS_RTR || state == IBV_QPS_RTS || state == IBV_QPS_SQD;
  // The first packet may be a request that is refused; its NAK needs the path.
  const bool refuses = state == IBV_QPS_ERR && qp.core.has_pending_responses();
  if (!connected && !refuses) return qp.core.path_ready();
  auto result = Resolution::kFailed;
  if (!qp.neighbor) {
    const Lookup lookup = parts_.neighbors.resolve(qp.core.attributes.path.destination_ip, context.now);
    if (lookup.entry != nullptr) qp.neighbor = parts_.neighbors.hold(*lookup.entry);
    result = lookup.result;
  } else {
    result = parts_.neighbors.use(*qp.neighbor, context.now);
  }
  switch (result) {
    case Resolution::kResolved:
      if (!qp.core.path_ready() || qp.neighbor_version != static_cast<uint16_t>(qp.neighbor->version)) {
        const MacAddress& mac = qp.neighbor->mac;
        qp.core.set_peer_mac(mac);
        if (peer_presence_ != nullptr) qp.peer_process = peer_presence_->process_of(mac);
        qp.neighbor_version = static_cast<uint16_t>(qp.neighbor->version);
      }
      return true;
    case Resolution::kPending:
      wait_for_neighbor(qp);
      return false;
    case Resolution::kFailed:
      qp.core.on_unreachable(context);
      return false;
  }
  return false;
}

void TransmitScheduler::set_timer(AttachedQueuePair& qp) {
  const Nanos deadline = qp.core.deadline();
  if (deadline == kNever) {
    timers_.cancel(qp);
  } else if (!qp.is_scheduled() || qp.Timer::deadline() != deadline) {
    timers_.schedule(qp, deadline);
  }
}

void TransmitScheduler::count_waiting(AttachedQueuePair& qp, bool waits) {
  if (waits == qp.waits_to_send) return;
  qp.waits_to_send = waits;
  // Sequentially consistent, as are the loads in WaitingHelper::wake_for_deadline() that follow, the stores of the helper
  // before it sleeps, and its load of this count after them. Either the helper finds that acknowledgments must wake it, or
  // the caller finds the helper's sleep and wakes it.
  waiting_to_send_.store(waiting_to_send_.load(std::memory_order_relaxed) + (waits ? 1U : UINT32_MAX),
                         std::memory_order_seq_cst);
}

Nanos TransmitScheduler::next_deadline() const {
  const Nanos next = timers_.next_deadline();
  return stopped_ == 0 ? next : std::min(next, flow_control_.resume_time(stopped_));
}

PathSource::Answer TransmitScheduler::find(AddressPath& to, Nanos now) {
  if (const unsigned priority = stopped_ == 0 ? 0 : flow_control_.priority_of(to.path);
      is_stopped(priority)) {
    stopped_to_ = static_cast<uint8_t>(priority + 1);
    return {PathState::kPending};
  }
  return addresses_.find(static_cast<AttachedAddress&>(to), now);
}

// The members receive the frame in the next round: one of them may be the sender, which is being served now.
void TransmitScheduler::loop_back(const rte_mbuf& frame, const IpAddress& group) {
  const auto members = groups_.members(group);
  parts_.handoff.copy_to_owners(&frame, members);
  if (std::ranges::none_of(
          members, [this](const AttachedQueuePair* qp) { return parts_.handoff.owns(qp->core.number()); }))
    return;
  if (!parts_.loopback.copy_multicast(frame, pool_)) parts_.counters.add(Counter::kLoopbackLost);
}

// The receivers get the frame in the next round, as frames to this host itself.
void TransmitScheduler::loop_back_frame(const rte_mbuf& frame) {
  if (steering_.empty()) return;
  rte_mbuf* copy = parts_.loopback.full() ? nullptr : rte_pktmbuf_copy(&frame, pool_, 0, UINT32_MAX);
  if (copy == nullptr) return parts_.counters.add(Counter::kLoopbackLost);
  parts_.loopback.push(copy);
}

void TransmitScheduler::wait_for_neighbor(AttachedQueuePair& qp) {
  if (qp.waiting_at != AttachedQueuePair::kNotWaiting) return;
  qp.waiting_at = static_cast<uint32_t>(waiting_.size());
  waiting_.push_back(&qp);
}

void TransmitScheduler::stop_waiting(AttachedQueuePair& qp) {
  if (qp.waiting_at == AttachedQueuePair::kNotWaiting) return;
  waiting_.back()->waiting_at = qp.waiting_at;
  waiting_[qp.waiting_at] = waiting_.back();
  waiting_.pop_back();
  qp.waiting_at = AttachedQueuePair::kNotWaiting;
}

bool TransmitScheduler::wake_all_waiting() {
  woken_generation_ = parts_.neighbors.generation();
  for (AttachedQueuePair* qp : waiting_) {
    qp->waiting_at = AttachedQueuePair::kNotWaiting;
    make_ready(*qp);
  }
  waiting_.clear();
  return true;
}

// `stopped_` is that of the last round, in which the queue pairs of all other priorities were served.
void TransmitScheduler::end_expired_pauses(Nanos now) {
  flow_control_.note_served(static_cast<uint8_t>(~stopped_));
  follow_pauses(now);
}

void TransmitScheduler::follow_pauses(Nanos now) {
  if (parts_.index == 0) flow_control_.watch(now, parts_.counters);
  const uint8_t stopped = flow_control_.stopped(now);
  for (unsigned left = stopped_ & ~unsigned{stopped}; left != 0; left &= left - 1) {
    QueuePairList& list = paused_queues_[static_cast<size_t>(__builtin_ctz(left))];
    while (list.first != nullptr) {
      AttachedQueuePair& qp = *list.first;
      resume(qp);
      qp.core.note_resumed(now);
    }
  }
  stopped_ = stopped;
}

// Pauses the queue pair if its priority is paused, and returns whether it did. Queue pairs in error must flush
// regardless of pauses. UD queue pairs have a priority per address handle. Raw frames have none.
bool TransmitScheduler::pause_if_stopped(AttachedQueuePair& qp) {
  if (!is_connected(qp.core.config.type) || qp.core.state() == IBV_QPS_ERR) return false;
  const unsigned priority = flow_control_.priority_of(qp.core.sent_path());
  if (!is_stopped(priority)) return false;
  pause(qp, priority);
  return true;
}

void TransmitScheduler::pause(AttachedQueuePair& qp, unsigned priority) {
  if (qp.paused != 0) return;  // its timer has expired meanwhile
  if (qp.ready) unlink(qp, ready_);
  link(qp, paused_queues_[priority]);
  qp.paused = static_cast<uint8_t>(priority + 1);
  flow_control_.note_paused(priority);
}

// Moves the queue pair back to the ready list.
void TransmitScheduler::resume(AttachedQueuePair& qp) {
  unlink(qp, paused_queues_[qp.paused - 1U]);
  qp.paused = 0;
  link(qp, ready_);
}

void TransmitScheduler::check_paused(AttachedQueuePair& qp) {
  if (qp.core.state() == IBV_QPS_ERR) end_pause_of(qp);
}

// While its priority is paused.
void TransmitScheduler::end_pause_of(AttachedQueuePair& qp) {
  const unsigned priority = qp.paused - 1U;
  resume(qp);
  if (paused_queues_[priority].count == 0) flow_control_.note_served(static_cast<uint8_t>(1U << priority));
}

}  // namespace roci
