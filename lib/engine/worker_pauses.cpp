// The part of the worker that does what PFC says, and says it (flow_control.hpp).
#include <algorithm>
#include <cstring>

#include "engine/worker.hpp"

namespace roci {

void Worker::follow_pauses(Nanos now) {
  if (index_ == 0) flow_control_.watch(now, counters_);
  const uint8_t stopped = flow_control_.stopped(now);
  for (unsigned left = stopped_ & ~unsigned{stopped}; left != 0; left &= left - 1) {
    QueuePairList& list = parked_[static_cast<size_t>(__builtin_ctz(left))];
    while (list.first != nullptr) {
      AttachedQueuePair& qp = *list.first;
      unpark(qp);
      qp.core.note_resumed(now);
    }
  }
  stopped_ = stopped;
}

// Whether the queue pair has to wait for the end of a pause. One in error has to be flushed, whatever is paused, and
// datagrams have an address each.
bool Worker::park_if_stopped(AttachedQueuePair& qp) {
  if (qp.core.config.type == IBV_QPT_UD || qp.core.state() == IBV_QPS_ERR) return false;
  const unsigned priority = flow_control_.priority_of(qp.core.attributes.path);
  if (!is_stopped(priority)) return false;
  park(qp, priority);
  return true;
}

void Worker::park(AttachedQueuePair& qp, unsigned priority) {
  if (qp.parked != 0) return;  // its timer ran out meanwhile
  if (qp.ready) unlink(qp, ready_);
  link(qp, parked_[priority]);
  qp.parked = static_cast<uint8_t>(priority + 1);
}

// Back among those with something to do.
void Worker::unpark(AttachedQueuePair& qp) {
  unlink(qp, parked_[qp.parked - 1U]);
  qp.parked = 0;
  link_ready(qp);
}

void Worker::look_at_parked(AttachedQueuePair& qp) {
  if (qp.core.state() == IBV_QPS_ERR) unpark(qp);
}

// The first worker's to take; what is no IP packet mostly comes to it.
Worker::Fate Worker::take_mac_control(rte_mbuf* frame, Nanos now, Origin origin) {
  if (!pausable_) {
    counters_.add(Counter::kPausesIgnored);
    return Fate::kDone;
  }
  if (index_ != 0 && origin == Origin::kPort) {
    pass_on(0, frame);
    return Fate::kPassedOn;
  }
  flow_control_.take(frame, now, counters_);
  return Fate::kDone;
}

// How many frames wait to be received by this worker. A port that cannot tell has at least as many as were taken from it
// without its running dry.
void Worker::note_backlog(const PortQueue& queue, bool full_burst) {
  full_bursts_ = full_burst ? std::min(full_bursts_ + 1, uint32_t{1} << 16) : 0;
  uint32_t waiting = queue.waiting().value_or(full_bursts_ * kRxBurst);
  for (const FrameRing* inbox : inboxes_) waiting = std::max(waiting, inbox->size());
  if (flow_control_.tells()) flow_control_.note_waiting(index_, waiting);
  if (receive_point_) receive_point_->note_waiting(waiting);
}

// In front of everything that waits to be sent. When there is no buffer or no room, with the next round.
bool Worker::tell_neighbour(Nanos now) {
  if (!flow_control_.tells() || !flow_control_.must_tell(now)) return false;
  std::array<uint8_t, kPauseFrameBytes> bytes;
  flow_control_.write(bytes);
  if (!send_first(bytes)) return false;
  counters_.add(Counter::kPausesSent);
  flow_control_.told(now);
  return true;
}

// A frame of ours in front of all data that wait to be sent: what slows others down must not wait for a line that is full. Such
// frames keep their order, by which signed ones are believed. False when there is no buffer or no room.
bool Worker::send_first(std::span<const uint8_t> bytes) {
  rte_mbuf* frame = staged_count_ < staged_.size() ? tx_buffers_.take() : nullptr;
  if (frame == nullptr) return false;
  std::memcpy(rte_pktmbuf_append(frame, static_cast<uint16_t>(bytes.size())), bytes.data(), bytes.size());
  const auto place = staged_.begin() + static_cast<ptrdiff_t>(staged_first_++);
  const auto end = staged_.begin() + static_cast<ptrdiff_t>(staged_count_++);
  std::move_backward(place, end, end + 1);
  *place = frame;
  counters_.add(Counter::kTxFrames);
  return true;
}

}  // namespace roci
