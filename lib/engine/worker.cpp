#include "engine/worker.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/guarded_access.hpp"
#include "base/trace_points.hpp"
#include "wire/copy_crc.hpp"

namespace roci {
namespace {

// Interval at which a queue pair that requires extensions checks for its peer's capabilities.
constexpr Nanos kPeerWait{5'000'000};

std::vector<ControlCore*> cores_of(const WorkerContext& worker_context) {
  std::vector<ControlCore*> cores;
  for (const auto& core : worker_context.control_cores) cores.push_back(core.get());
  return cores;
}

}  // namespace

Worker::Worker(std::string name, uint32_t index, const WorkerContext& worker_context)
    : name_(std::move(name)),
      index_(index),
      port_(worker_context.port),
      peer_presence_(worker_context.hand_over.workers() == 1 ? worker_context.port.peers() : nullptr),
      placement_(worker_context.hand_over.workers() == 1 ? worker_context.port.placement() : nullptr),
      mac_(worker_context.port.mac()),
      mac_bits_(mac_.bits()),
      memory_(worker_context.memory),
      groups_(worker_context.groups),
      events_(worker_context.events),
      tx_buffers_(worker_context.tx_pool),
      quantum_(worker_context.packets_per_turn != 0 ? worker_context.packets_per_turn : kQuantum),
      quanta_a_round_(worker_context.packets_per_turn != 0 ? 1 : kQuantaPerRound),
      stage_(worker_context.packets_per_turn != 0 ? std::max(worker_context.packets_per_turn, 2U) : kTxStage),
      header_only_(worker_context.header_only),
      needs_icrc_(worker_context.port.capabilities().needs_icrc),
      sends_direct_(worker_context.hand_over.workers() == 1 &&
                    worker_context.port.capabilities().direct_buffers),
      place_early_(!worker_context.check_before_placing && copies_in_one_pass()),
      telemetry_(worker_context.telemetry, kRxBurst, tx_buffers_.pool()),
      extensions_(name_, worker_context.extensions, worker_context.telemetry,
                  worker_context.port.capabilities().mtu),
      link_up_(worker_context.port.link_up()),
      all_flows_(worker_context.flows),
      flows_(worker_context.flows.of(index)),
      flow_control_(worker_context.flow_control),
      pausable_(worker_context.flow_control.enabled()),
      watches_backlog_(worker_context.flow_control.sends_pauses() ||
                       worker_context.congestion.receive_point.qeq > 0),
      congestion_(worker_context.congestion),
      congestion_flows_(worker_context.congestion_flows),
      cnms_(congestion_, congestion_flows_, worker_context.telemetry.udp_port,
            worker_context.hand_over.workers(), congestion_.cnm_key ? worker_context.ids.next32() : 0),
      notification_point_(worker_context.control.notification_point),
      control_({worker_context.control, worker_context.arena, cores_of(worker_context), congestion_flows_,
                worker_context.port.capabilities().link_rate, name_, index, worker_context.ids}) {
  if (congestion_.receive_point.qeq > 0) {
    congestion_point_.emplace(congestion_, mac_, index, worker_context.hand_over.workers(),
                              worker_context.ids.next32());
  }
  Handoff& rings = worker_context.hand_over;
  for (uint32_t queue = index; queue < worker_context.port.queues(); queue += rings.workers()) {
    queues_.push_back(&worker_context.port.queue(static_cast<uint16_t>(queue)));
  }
  if (worker_context.hand_over.workers() == 1) port_.receive_in_place();
  if (rings.needs_relay(index)) outgoing_ = &rings.outgoing(index);
  outboxes_.resize(rings.workers());
  for (uint32_t other = 0; other < rings.workers(); ++other) {
    if (other == index) continue;
    inboxes_.push_back(&rings.inbox(other, index));
    outboxes_[other].ring = &rings.inbox(index, other);
    if (rings.needs_relay(other) && rings.relay_of(other) == index)
      relayed_.push_back(&rings.outgoing(other));
  }
}

Result<std::unique_ptr<Worker>> Worker::create(std::string name, uint32_t index,
                                               const WorkerContext& worker_context,
                                               NeighborConfig neighbors) {
  std::unique_ptr<Worker> worker(new Worker(std::move(name), index, worker_context));
  worker->vlan_ = neighbors.vlan_id;
  neighbors.answers = index == 0;
  auto made = Neighbors::create(std::move(neighbors), *worker);
  if (!made) return fail(made.error().within("device " + worker->name_));
  worker->neighbors_ = std::move(*made);
  worker->addresses_ = std::make_unique<AddressResolver>(
      *worker->neighbors_, index,
      worker->needs_icrc_ ? RoceWriter::Contents::kWhole : RoceWriter::Contents::kWithoutIcrc);
  if (index == 0) {
    const PeerExtensions& extensions = worker->extensions_;
    PacketSink& sink = *worker;
    worker->management_ = std::make_unique<Management>(worker->mac_, worker->vlan_, sink, *worker->neighbors_,
                                                       worker->counters_);
    worker->peers_ = std::make_unique<Peers>(extensions.config(), kReorderWindow, extensions.extra_bytes(),
                                             extensions.int_hops(), worker_context.ids, *worker->management_,
                                             worker->counters_);
  }
  return worker;
}

Worker::~Worker() {
  for (size_t i = 0; i < staged_count_; ++i) rte_pktmbuf_free(staged_[i]);
  while (!loopback_.empty()) rte_pktmbuf_free(loopback_.pop());
  while (!loopback_frames_.empty()) rte_pktmbuf_free(loopback_frames_.pop());
}

bool Worker::attach(AttachedQueuePair& qp) {
  qp.worker = this;
  return queue_pairs_.insert(qp.core.number().value(), &qp);
}

void Worker::detach(AttachedQueuePair& qp) {
  take_doorbells();  // empties the stack, which may contain the queue pair
  queue_pairs_.erase(qp.core.number().value());
  count_waiting(qp, false);
  leave_congestion(qp);
  control_.detach(qp);
  withdraw_grants(qp);
  timers_.cancel(qp);
  qp.neighbor = NeighborRef();
  stop_waiting(qp);
  if (qp.paused != 0) resume(qp);
  if (qp.ready) unlink(qp, ready_);
}

void Worker::link(AttachedQueuePair& qp, QueuePairList& list) {
  qp.ready = true;
  qp.next_ready = nullptr;
  qp.previous_ready = list.last;
  (list.last == nullptr ? list.first : list.last->next_ready) = &qp;
  list.last = &qp;
  ++list.count;
}

void Worker::link_first(AttachedQueuePair& qp, QueuePairList& list) {
  qp.ready = true;
  qp.next_ready = list.first;
  qp.previous_ready = nullptr;
  (list.first == nullptr ? list.last : list.first->previous_ready) = &qp;
  list.first = &qp;
  ++list.count;
}

void Worker::unlink(AttachedQueuePair& qp, QueuePairList& list) {
  (qp.previous_ready == nullptr ? list.first : qp.previous_ready->next_ready) = qp.next_ready;
  (qp.next_ready == nullptr ? list.last : qp.next_ready->previous_ready) = qp.previous_ready;
  --list.count;
  qp.ready = false;
}

void Worker::ring(AttachedQueuePair& qp) {
  // While `rung` is set, the worker has not yet checked the queue, and will do so.
  if (qp.rung.exchange(true, std::memory_order_seq_cst)) return;
  qp.next_rung = rung_.load(std::memory_order_relaxed);
  while (
      !rung_.compare_exchange_weak(qp.next_rung, &qp, std::memory_order_release, std::memory_order_relaxed)) {
  }
}

bool Worker::take_doorbells() {
  if (rung_.load(std::memory_order_relaxed) == nullptr) return false;
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

// A change of the link state is an event (IBTA 11.6.3.3). Queue pairs only see packet loss.
bool Worker::watch_link(TransportContext& context) {
  link_watched_ = context.now;
  const bool up = port_.link_up();
  if (up == link_up_) return false;
  link_up_ = up;
  context.raise(up ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR, {EventSource::kPort, 1, nullptr});
  return true;
}

bool Worker::poll(Nanos now) {
  TransportContext context{now, *this, memory_, counters_, events_, *this, &completions_};
  if (extensions_.enabled()) {
    flows_.advance(now);
    context.flows = all_flows_.sum();
    context.telemetry = telemetry_.hops();
  }
  context.peer_activity = &peer_activity_;
  context.peers = peer_presence_;
  context.placement = placement_;
  context.direct = sends_direct_;
  blocked_ = false;
  now_ = now;
  bool worked = flush();
  if (index_ == 0 && now - link_watched_ >= kLinkWatch) worked |= watch_link(context);
  worked |= take_doorbells();
  if (pausable_) follow_pauses(now);
  const bool controls = control_.any();
  if (controls) worked |= control_.poll(now, [this](AttachedQueuePair& qp) { make_ready(qp); });
  worked |= receive(context);
  if (peer_presence_ != nullptr) worked |= note_exits(context);
  // After a full burst, responses that arrived in time may still wait in the port.
  context.frames_wait = full_rounds_ > 0 && full_rounds_ < kMaxBursts;
  context.frames_unsent = staged_count_ > 0 && now - port_accepted_ < kPortStalled;
  worked |= run_timers(context);
  if (pausable_) {
    follow_pauses(now);
    if (index_ == 0) worked |= send_pause(now);
  }
  completions_.publish();
  if (controls) control_.send_events(now, context.flows);
  if (!loopback_.empty()) [[unlikely]]
    worked |= receive_own_multicasts(context);
  worked |= neighbors_->poll(now);
  if (management_ != nullptr) worked |= management_->poll(now);
  worked |= wake_waiting();
  if (loopback_frames_.size() >= kLoopbackLimit) [[unlikely]]
    blocked_ = true;  // loopback frames are received first
  worked |= serve_ready(context);
  if (has_outgoing_) deliver_outboxes();  // own multicasts
  worked |= relay();
  worked |= flush();
  completions_.publish();
  if (memory_faults.uncounted != 0) [[unlikely]]
    counters_.add(Counter::kMemoryFaults, std::exchange(memory_faults.uncounted, 0));
  return worked;
}

void Worker::count_waiting(AttachedQueuePair& qp, bool waits) {
  if (waits == qp.waits_to_send) return;
  qp.waits_to_send = waits;
  waiting_to_send_.store(waiting_to_send() + (waits ? 1U : UINT32_MAX), std::memory_order_relaxed);
}

bool Worker::run_timers(TransportContext& context) {
  return timers_.advance(context.now, [&](Timer& timer) {
    auto& qp = static_cast<AttachedQueuePair&>(timer);
    if (stopped_ != 0 && pause_if_stopped(qp)) return;  // the queue pair could not send at this time
    qp.core.on_deadline(context);
    control_.touch(qp.core);
    make_ready(qp);
  }) > 0;
}

// Queue pairs whose peer's process has exited do not wait for their time-outs.
bool Worker::note_exits(TransportContext& context) {
  bool any = false;
  while (const auto exited = peer_presence_->take_exit()) {
    any = true;
    const uint16_t successor = peer_presence_->process_of(*exited);
    for_each_queue_pair([&](AttachedQueuePair& qp) {
      if (!is_reliable(qp.core.config.type) || qp.core.attributes.path.destination_mac != *exited) return;
      if (successor != 0 && qp.peer_process == successor) return;
      qp.core.on_peer_exit(context);
      make_ready(qp);
    });
  }
  return any;
}

Nanos Worker::next_deadline() const {
  if (rung_.load(std::memory_order_relaxed) != nullptr || ready_.count > 0 || staged_count_ > 0 ||
      !loopback_.empty() || !loopback_frames_.empty()) {
    return Nanos{0};
  }
  const auto waits = [](const FrameRing* ring) { return !ring->empty(); };
  if (std::any_of(inboxes_.begin(), inboxes_.end(), waits) ||
      std::any_of(relayed_.begin(), relayed_.end(), waits)) {
    return Nanos{0};
  }
  Nanos next = std::min(timers_.next_deadline(), neighbors_->next_deadline());
  if (control_.any()) next = std::min(next, control_.next_deadline());
  if (management_ != nullptr) next = std::min(next, management_->next_deadline());
  for (const PortQueue* queue : queues_) next = std::min(next, queue->next_arrival());
  if (stopped_ != 0) next = std::min(next, flow_control_.resume_time(stopped_));
  if (pausable_ && index_ == 0) next = std::min(next, flow_control_.next_pause());
  if (!link_up_ && index_ == 0) next = std::min(next, link_watched_ + kLinkWatch);
  return next;
}

PathSource::Answer Worker::find(AddressPath& to, Nanos now) {
  if (const unsigned priority = stopped_ == 0 ? 0 : flow_control_.priority_of(to.path);
      is_stopped(priority)) {
    stopped_to_ = static_cast<uint8_t>(priority + 1);
    return {PathState::kPending};
  }
  return addresses_->find(static_cast<AttachedAddress&>(to), now);
}

// Serves the ready queue pairs round robin, each for a quantum.
bool Worker::serve_ready(TransportContext& context) {
  bool worked = false;
  // `ahead` is some turns ahead of the served queue pair, for prefetching.
  AttachedQueuePair* ahead = queue_pairs_.size() > kFew ? ready_.first : nullptr;
  const auto fetch = [&ahead] {
    if (ahead == nullptr) return;
    ahead->prefetch();
    ahead = ahead->next_ready;
  };
  for (uint32_t i = 0; i < kTurnsAhead; ++i) fetch();
  const uint32_t quanta = std::max(1U, quanta_a_round_ / std::max(ready_.count, 1U));
  const bool more_than_a_round = ready_.count > kTurnsPerRound;
  for (uint32_t turns = std::min(ready_.count, kTurnsPerRound); turns > 0 && !blocked_; --turns) {
    fetch();
    AttachedQueuePair& qp = *ready_.first;
    unlink(qp, ready_);
    if (stopped_ != 0 && pause_if_stopped(qp)) continue;
    const uint64_t sent_before = counters_.get(Counter::kTxFrames);
    bool more = false;
    extensions_.follow(qp, false);
    const auto negotiation = extensions_.negotiation_of(qp);
    const bool waits_for_peer = negotiation == PeerExtensions::Negotiation::kNotYet;
    ControlledQueuePair* const controlled = CongestionControl::of(qp.core);
    if (controlled != nullptr) controlled->begin_turn();
    if (negotiation == PeerExtensions::Negotiation::kRefused ||
        (controlled != nullptr && !waits_for_peer && !control_.prepare(*controlled, context.now)))
      qp.core.fail_for_good(context);
    const bool reachable = !waits_for_peer && refresh_path(context, qp);
    const ibv_qp_state state = qp.core.state();
    if (state == IBV_QPS_ERR) withdraw_grants(qp);
    if (reachable || state == IBV_QPS_ERR || state == IBV_QPS_SQD)  // some of their work needs no peer
      more = transmit(context, qp, quanta);
    if (controlled != nullptr) control_.after_turn(*controlled, context.now);
    if (const bool waits = qp.core.waits_to_send(); waits != qp.waits_to_send) count_waiting(qp, waits);
    if (addresses_->take_pending()) wait_for_neighbor(qp);
    if (stopped_to_ != 0) pause_queue_pair(qp, std::exchange(stopped_to_, uint8_t{0}) - 1U);
    const bool sent = counters_.get(Counter::kTxFrames) != sent_before;
    worked |= sent;
    if (more) {
      // A queue pair that found the port full has not had its turn. At
      // the end of the list it would find a full port in each round.
      if (blocked_ && !sent && !qp.ready) {
        link_first(qp, ready_);
      } else {
        make_ready(qp);
      }
      worked |= !blocked_;
    }
    if (waits_for_peer) {
      timers_.schedule(qp, context.now + kPeerWait);
    } else {
      set_timer(qp);
    }
  }
  // If some queue pairs have not had their turn, there may be work although no served queue pair had any.
  return worked || (more_than_a_round && !blocked_);
}

// Returns whether the queue pair has more to send.
bool Worker::transmit(TransportContext& context, AttachedQueuePair& qp, uint32_t quanta) {
  turn_bytes_ = 0;
  while (qp.core.transmit(context, quantum_)) {
    if (--quanta == 0 || blocked_ || turn_bytes_ >= kBytesPerTurn) return true;
  }
  return false;
}

// Returns whether the peer is reachable. If not, the queue pair waits until the neighbor table changes.
bool Worker::refresh_path(TransportContext& context, AttachedQueuePair& qp) {
  if (qp.core.config.type == IBV_QPT_UD) return true;  // each request has its own path
  const ibv_qp_state state = qp.core.state();
  const bool connected = state == IBV_QPS_RTR || state == IBV_QPS_RTS || state == IBV_QPS_SQD;
  // The first packet may be a request that is refused; its NAK needs the path.
  const bool refuses = state == IBV_QPS_ERR && qp.core.has_pending_responses();
  if (!connected && !refuses) return qp.core.path_ready();
  auto result = Resolution::kFailed;
  if (!qp.neighbor) {
    const Lookup lookup = neighbors_->resolve(qp.core.attributes.path.destination_ip, context.now);
    if (lookup.entry != nullptr) qp.neighbor = neighbors_->hold(*lookup.entry);
    result = lookup.result;
  } else {
    result = neighbors_->use(*qp.neighbor, context.now);
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

void Worker::wait_for_neighbor(AttachedQueuePair& qp) {
  if (qp.waiting_at != AttachedQueuePair::kNotWaiting) return;
  qp.waiting_at = static_cast<uint32_t>(waiting_.size());
  waiting_.push_back(&qp);
}

void Worker::stop_waiting(AttachedQueuePair& qp) {
  if (qp.waiting_at == AttachedQueuePair::kNotWaiting) return;
  waiting_.back()->waiting_at = qp.waiting_at;
  waiting_[qp.waiting_at] = waiting_.back();
  waiting_.pop_back();
  qp.waiting_at = AttachedQueuePair::kNotWaiting;
}

bool Worker::wake_waiting() {
  if (neighbors_->generation() == woken_generation_) return false;
  woken_generation_ = neighbors_->generation();
  for (AttachedQueuePair* qp : waiting_) {
    qp->waiting_at = AttachedQueuePair::kNotWaiting;
    make_ready(*qp);
  }
  waiting_.clear();
  return true;
}

void Worker::set_timer(AttachedQueuePair& qp) {
  const Nanos deadline = qp.core.deadline();
  if (deadline == kNever) {
    timers_.cancel(qp);
  } else if (!qp.is_scheduled() || qp.Timer::deadline() != deadline) {
    timers_.schedule(qp, deadline);
  }
}

bool Worker::has_stage_space() {
  if (staged_count_ >= stage_) flush();
  if (staged_count_ < stage_) return true;
  blocked_ = true;
  return false;
}

rte_mbuf* Worker::allocate_direct(const MacAddress& to, uint32_t bytes) {
  if (!has_stage_space()) return nullptr;
  const PortQueue::DirectBuffer buffer = queues_[0]->take_direct(to, bytes, now_);
  if (buffer.outcome == PortQueue::DirectBuffer::Outcome::kUnavailable) return allocate();
  if (buffer.frame == nullptr) {
    flush();  // the staged frames may occupy the receiver's memory
    blocked_ = true;
  }
  return buffer.frame;
}

rte_mbuf* Worker::allocate() {
  if (!has_stage_space()) return nullptr;
  rte_mbuf* frame = tx_buffers_.take();
  if (frame == nullptr) {
    counters_.add(Counter::kTxNoBuffer);
    blocked_ = true;
  }
  return frame;
}

// A frame to the host itself is received in the next round. The network would not return it, because a switch does not
// send a frame to the port on which it arrived. NICs loop back as well.
void Worker::send(rte_mbuf* frame) {
  turn_bytes_ += frame->pkt_len;
  counters_.add(Counter::kTxFrames);
  if (!RTE_MBUF_HAS_EXTBUF(frame)) {  // a direct buffer always goes to the receiver for which it was taken
    uint64_t first = 0;               // destination, and two bytes of the source
    std::memcpy(&first, rte_pktmbuf_mtod(frame, const void*), sizeof first);
    if (((first ^ mac_bits_) << 16) == 0) [[unlikely]]
      return enqueue_loopback(frame);
  }
  staged_[staged_count_++] = frame;
}

void Worker::enqueue_loopback(rte_mbuf* frame) {
  loopback_frames_.push(frame);
  if (loopback_frames_.size() >= kLoopbackLimit) blocked_ = true;
}

// Stages the frames of workers without a port queue, while at most
// half of the stage is in use. Returns whether there were any.
bool Worker::relay() {
  bool worked = false;
  for (size_t i = 0; i < relayed_.size(); ++i) {
    if (staged_count_ > kTxStage / 2) flush();
    if (staged_count_ > kTxStage / 2) break;
    // Continues after the worker at which a full port stopped it.
    next_relayed_ = (next_relayed_ + 1) % relayed_.size();
    const uint32_t count = relayed_[next_relayed_]->pop({&staged_[staged_count_], kTxStage / 2});
    staged_count_ += count;
    worked |= count > 0;
  }
  return worked;
}

// Returns whether the port accepted any frame.
bool Worker::flush() {
  if (staged_count_ == 0) return false;
  const std::span<rte_mbuf*> staged(staged_.data(), staged_count_);
  const uint32_t taken = outgoing_ != nullptr ? outgoing_->push(staged) : queues_[0]->tx_burst(staged, now_);
  trace::burst_sent(static_cast<uint32_t>(staged.size()), taken);
  std::move(staged_.begin() + taken, staged_.begin() + static_cast<ptrdiff_t>(staged_count_),
            staged_.begin());
  staged_count_ -= taken;
  staged_first_ -= std::min<size_t>(staged_first_, taken);
  if (taken > 0) port_accepted_ = now_;
  if (staged_count_ == 0 || !sends_direct_) return taken > 0;
  return flush_direct() || taken > 0;
}

// Sends the direct buffers of the stage. A refused frame may wait for
// space that later direct buffers occupy until they are sent.
bool Worker::flush_direct() {
  std::array<rte_mbuf*, kTxStage + kTxFirst> direct{};
  size_t count = 0, others = 0;
  for (size_t i = 0; i < staged_count_; ++i) {
    rte_mbuf* const frame = staged_[i];
    if (RTE_MBUF_HAS_EXTBUF(frame)) {
      direct[count++] = frame;
    } else {
      staged_[others++] = frame;
    }
  }
  if (count == 0) return false;
  const uint32_t taken = queues_[0]->tx_burst({direct.data(), count}, now_);
  trace::burst_sent(static_cast<uint32_t>(count), taken);
  std::copy(direct.begin() + taken, direct.begin() + static_cast<ptrdiff_t>(count),
            staged_.begin() + static_cast<ptrdiff_t>(others));
  staged_count_ = others + count - taken;
  return taken > 0;
}

}  // namespace roci
