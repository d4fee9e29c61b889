// The part of the worker that obeys and sends PFC pauses (flow_control.hpp).
#include <algorithm>
#include <cstring>

#include "engine/worker.hpp"

namespace roci {

void Worker::follow_pauses(Nanos now) {
  if (index_ == 0) flow_control_.watch(now, counters_);
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

// Parks the queue pair if its priority is paused, and returns whether it did. Queue pairs in error must flush
// regardless of pauses. UD queue pairs have a priority per address handle.
bool Worker::pause_if_stopped(AttachedQueuePair& qp) {
  if (qp.core.config.type == IBV_QPT_UD || qp.core.state() == IBV_QPS_ERR) return false;
  const unsigned priority = flow_control_.priority_of(qp.core.sent_path());
  if (!is_stopped(priority)) return false;
  pause_queue_pair(qp, priority);
  return true;
}

void Worker::pause_queue_pair(AttachedQueuePair& qp, unsigned priority) {
  if (qp.paused != 0) return;  // its timer has expired meanwhile
  if (qp.ready) unlink(qp, ready_);
  link(qp, paused_queues_[priority]);
  qp.paused = static_cast<uint8_t>(priority + 1);
}

// Moves the queue pair back to the ready list.
void Worker::resume(AttachedQueuePair& qp) {
  unlink(qp, paused_queues_[qp.paused - 1U]);
  qp.paused = 0;
  link_ready(qp);
}

void Worker::check_paused(AttachedQueuePair& qp) {
  if (qp.core.state() == IBV_QPS_ERR) resume(qp);
}

// Processed by the first worker, which usually receives the frames without an IP packet.
Worker::Verdict Worker::take_mac_control(rte_mbuf* frame, Nanos now, Origin origin) {
  if (!pausable_) {
    counters_.add(Counter::kPausesIgnored);
    return Verdict::kDone;
  }
  if (index_ != 0 && origin == Origin::kPort) {
    hand_over_frame(0, frame);
    return Verdict::kHandedOver;
  }
  flow_control_.take(frame, now, counters_);
  return Verdict::kDone;
}

// Updates the number of frames that wait for this worker. For a port that cannot report it, the estimate is the number
// of frames received since the port was last empty.
void Worker::note_backlog(const PortQueue& queue, bool full_burst) {
  full_bursts_ = full_burst ? std::min(full_bursts_ + 1, uint32_t{1} << 16) : 0;
  uint32_t waiting = queue.waiting().value_or(full_bursts_ * kRxBurst);
  for (const FrameRing* inbox : inboxes_) waiting = std::max(waiting, inbox->size());
  if (flow_control_.sends_pauses()) flow_control_.note_waiting(index_, waiting);
  if (congestion_point_) congestion_point_->note_waiting(waiting);
}

// Sends a pause ahead of all staged frames. If there is no buffer or no space, retries in the next round.
bool Worker::send_pause(Nanos now) {
  if (!flow_control_.sends_pauses() || !flow_control_.must_send_pause(now)) return false;
  std::array<uint8_t, kPauseFrameBytes> bytes;
  flow_control_.write(bytes);
  if (!send_first(bytes)) return false;
  counters_.add(Counter::kPausesSent);
  flow_control_.on_pause_sent(now);
  return true;
}

// Sends a frame ahead of all staged data: frames that slow down senders must not wait for a
// congested line. These frames keep their order, because receivers of signed ones check sequence
// numbers. Returns false if there is no buffer or no space.
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
