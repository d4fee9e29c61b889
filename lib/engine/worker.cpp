#include "engine/worker.hpp"

#include <algorithm>
#include <utility>

#include "wire/icrc.hpp"

namespace roci {
Worker::Worker(std::string name, Port& port, const MemoryTable& memory, std::shared_ptr<MbufPool> tx_pool)
    : name_(std::move(name)), port_(port), mac_(port.mac()), memory_(memory), tx_pool_(std::move(tx_pool)) {}

Result<std::unique_ptr<Worker>> Worker::create(std::string name, Port& port,
                                               const NeighbourConfig& neighbours, const MemoryTable& memory,
                                               std::shared_ptr<MbufPool> tx_pool) {
  std::unique_ptr<Worker> worker(new Worker(std::move(name), port, memory, std::move(tx_pool)));
  worker->vlan_ = neighbours.vlan_id;
  auto made = Neighbours::create(neighbours, *worker);
  if (!made) return fail(made.error().within("device " + worker->name_));
  worker->neighbours_ = std::move(*made);
  return worker;
}

Worker::~Worker() {
  for (size_t i = 0; i < staged_count_; ++i) rte_pktmbuf_free(staged_[i]);
}

bool Worker::attach(AttachedQueuePair& qp) { return queue_pairs_.insert(qp.core.number().value(), &qp); }

void Worker::detach(AttachedQueuePair& qp) {
  take_doorbells();  // empties the stack that may hold it
  queue_pairs_.erase(qp.core.number().value());
  timers_.cancel(qp);
  qp.neighbour = NeighbourRef();
  std::erase(waiting_, &qp);
  qp.waits_for_neighbour = false;
  AttachedQueuePair* previous = nullptr;
  for (AttachedQueuePair* at = first_ready_; at != nullptr; previous = at, at = at->next_ready) {
    if (at != &qp) continue;
    (previous == nullptr ? first_ready_ : previous->next_ready) = qp.next_ready;
    if (last_ready_ == &qp) last_ready_ = previous;
    --ready_count_;
    break;
  }
  qp.ready = false;
}

void Worker::make_ready(AttachedQueuePair& qp) {
  if (qp.ready) return;
  qp.ready = true;
  qp.next_ready = nullptr;
  (last_ready_ == nullptr ? first_ready_ : last_ready_->next_ready) = &qp;
  last_ready_ = &qp;
  ++ready_count_;
}

void Worker::ring(AttachedQueuePair& qp) {
  // While `rung` is set the worker has not yet looked at the queue, and will.
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
    // Before the queue is looked at. An exchange, to see what those posted who found it set and went away.
    qp.rung.exchange(false, std::memory_order_seq_cst);
    make_ready(qp);
  }
  return true;
}

bool Worker::poll(Nanos now) {
  TransportContext context{now, *this, memory_, counters_};
  blocked_ = false;
  now_ = now;
  bool worked = flush();
  worked |= take_doorbells();
  worked |= timers_.advance(now, [&](Timer& timer) {
    auto& qp = static_cast<AttachedQueuePair&>(timer);
    qp.core.on_deadline(context);
    make_ready(qp);
  }) > 0;
  worked |= receive(context);
  worked |= neighbours_->poll(now);
  worked |= wake_waiting();
  worked |= serve_ready(context);
  worked |= flush();
  return worked;
}

Nanos Worker::next_deadline() const {
  if (rung_.load(std::memory_order_relaxed) != nullptr || ready_count_ > 0 || staged_count_ > 0)
    return Nanos{0};
  return std::min({port_.next_arrival(), timers_.next_deadline(), neighbours_->next_deadline()});
}

bool Worker::receive(TransportContext& context) {
  std::array<rte_mbuf*, kRxBurst> burst;
  const uint16_t count = port_.rx_burst(burst, context.now);
  if (count == 0) return false;
  counters_.add(Counter::kRxFrames, count);
  for (uint16_t i = 0; i < count; ++i) rte_prefetch0(rte_pktmbuf_mtod(burst[i], const void*));
  uint16_t good = 0;
  for (uint16_t i = 0; i < count; ++i) {
    Received& slot = received_[good];
    slot.frame = burst[i];
    if (classify(slot, context.now)) {
      queue_pairs_.prefetch(slot.view.destination_qp().value());
      ++good;
    }
  }
  for (uint16_t i = 0; i < good; ++i) {
    received_[i].qp = queue_pairs_.find(received_[i].view.destination_qp().value());
    rte_prefetch0(received_[i].qp);
  }
  for (uint16_t i = 0; i < good; ++i) {
    const Received& packet = received_[i];
    if (packet.qp != nullptr) {
      packet.qp->core.on_packet(context, packet.view, packet.frame);
      make_ready(*packet.qp);
    } else {
      counters_.add(Counter::kRxUnknownQp);
    }
  }
  rte_pktmbuf_free_bulk(burst.data(), count);
  return true;
}

// Whether the frame is RoCEv2 for this host with a right ICRC. Everything else is done with here.
bool Worker::classify(Received& received, Nanos now) {
  rte_mbuf* frame = received.frame;
  const auto parse = [&] {
    received.view = FrameView();
    parse_frame(received.view, rte_pktmbuf_mtod(frame, const uint8_t*), rte_pktmbuf_data_len(frame),
                rte_pktmbuf_pkt_len(frame));
  };
  parse();
  FrameView& view = received.view;
  if (view.kind == FrameKind::kTruncated && frame->nb_segs > 1 && rte_pktmbuf_linearize(frame) == 0) parse();
  if (view.kind == FrameKind::kTruncated && rte_pktmbuf_data_len(frame) < sizeof(EthernetHeader)) {
    counters_.add(Counter::kRxMalformed);
    return false;
  }
  const MacAddress& to = view.ethernet().destination;
  if ((to != mac_ && !to.is_multicast()) || (view.vlan_id() != vlan_)) {
    counters_.add(Counter::kRxNotForUs);
    return false;
  }
  switch (view.kind) {
    case FrameKind::kRoce:
      break;
    case FrameKind::kArp:
    case FrameKind::kIpv4:
    case FrameKind::kIpv6:
      if (!neighbours_->handle(view, frame, now)) counters_.add(Counter::kRxOtherProtocol);
      return false;
    case FrameKind::kOther:
      counters_.add(Counter::kRxOtherProtocol);
      return false;
    case FrameKind::kUnknownOpcode:
      counters_.add(Counter::kRxUnknownOpcode);
      return false;
    default:
      counters_.add(Counter::kRxMalformed);
      return false;
  }
  if (compute_icrc(view, frame) != stored_icrc(view, frame)) {
    counters_.add(Counter::kRxIcrcErrors);
    return false;
  }
  counters_.add(Counter::kRxRoce);
  return true;
}

// Round robin over the queue pairs that have something to do, each for a quantum.
bool Worker::serve_ready(TransportContext& context) {
  bool worked = false;
  for (uint32_t turns = std::min(ready_count_, kTurnsPerRound); turns > 0 && !blocked_; --turns) {
    AttachedQueuePair& qp = *first_ready_;
    first_ready_ = qp.next_ready;
    if (first_ready_ == nullptr) last_ready_ = nullptr;
    --ready_count_;
    qp.ready = false;
    const uint64_t sent_before = counters_.get(Counter::kTxFrames);
    bool more = false;
    if (refresh_path(context, qp) || qp.core.state() == IBV_QPS_ERR)
      more = qp.core.transmit(context, kQuantum);
    worked |= counters_.get(Counter::kTxFrames) != sent_before;
    if (more) {
      make_ready(qp);
      worked |= !blocked_;
    }
    set_timer(qp);
  }
  return worked;
}

// Whether the peer can be sent to. If not, the queue pair waits until the neighbour table changes.
bool Worker::refresh_path(TransportContext& context, AttachedQueuePair& qp) {
  const ibv_qp_state state = qp.core.state();
  if (state != IBV_QPS_RTR && state != IBV_QPS_RTS) return qp.core.path_ready();
  auto result = Resolution::kFailed;
  if (!qp.neighbour) {
    const Lookup lookup = neighbours_->resolve(qp.core.attributes.path.destination_ip, context.now);
    if (lookup.entry != nullptr) qp.neighbour = neighbours_->hold(*lookup.entry);
    result = lookup.result;
  } else {
    result = neighbours_->use(*qp.neighbour, context.now);
  }
  switch (result) {
    case Resolution::kResolved:
      if (!qp.core.path_ready() || qp.neighbour_version != qp.neighbour->version) {
        qp.core.set_peer_mac(qp.neighbour->mac);
        qp.neighbour_version = qp.neighbour->version;
      }
      return true;
    case Resolution::kPending:
      if (!qp.waits_for_neighbour) {
        qp.waits_for_neighbour = true;
        waiting_.push_back(&qp);
      }
      return false;
    case Resolution::kFailed:
      qp.core.on_unreachable(context);
      return false;
  }
  return false;
}

bool Worker::wake_waiting() {
  if (neighbours_->generation() == woken_generation_) return false;
  woken_generation_ = neighbours_->generation();
  for (AttachedQueuePair* qp : waiting_) {
    qp->waits_for_neighbour = false;
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

rte_mbuf* Worker::allocate() {
  if (staged_count_ == kTxStage) flush();
  if (staged_count_ == kTxStage) {
    blocked_ = true;
    return nullptr;
  }
  rte_mbuf* frame = rte_pktmbuf_alloc(tx_pool_->get());
  if (frame == nullptr) {
    counters_.add(Counter::kTxNoBuffer);
    blocked_ = true;
  }
  return frame;
}

void Worker::send(rte_mbuf* frame) {
  staged_[staged_count_++] = frame;
  counters_.add(Counter::kTxFrames);
}

// Whether the port took anything.
bool Worker::flush() {
  if (staged_count_ == 0) return false;
  const uint16_t taken = port_.tx_burst(std::span(staged_.data(), staged_count_), now_);
  std::move(staged_.begin() + taken, staged_.begin() + static_cast<ptrdiff_t>(staged_count_),
            staged_.begin());
  staged_count_ -= taken;
  return taken > 0;
}

}  // namespace roci
