#include "engine/transmit/transmit_stage.hpp"

#include <algorithm>
#include <cstring>

#include "base/trace_points.hpp"

namespace roci {

TransmitStage::TransmitStage(const WorkerContext& context, uint32_t index, WorkerHandoff& handoff,
                             Loopback& loopback, Counters& counters)
    : queue_(index < context.port.queues() ? &context.port.queue(static_cast<uint16_t>(index)) : nullptr),
      outgoing_(handoff.outgoing()),
      relayed_(handoff.relayed()),
      shares_port_(outgoing_ != nullptr || !relayed_.empty()),
      port_state_(handoff.port_state()),
      loopback_(loopback),
      counters_(counters),
      own_mac_(context.port.mac().bits()),
      limit_(context.packets_per_turn != 0 ? std::max(context.packets_per_turn, 2U) : kStage),
      own_limit_(limit_),
      sends_direct_(context.has_one_worker() && context.port.capabilities().direct_buffers),
      buffers_(context.tx_pool) {}

TransmitStage::~TransmitStage() {
  for (size_t i = 0; i < staged_count_; ++i) rte_pktmbuf_free(staged_[i]);
}

// If frames of other workers wait, own ones leave half of the stage to them.
void TransmitStage::begin_shared_round() {
  const bool others = std::ranges::any_of(relayed_, [](const FrameRing* ring) { return !ring->empty(); });
  own_limit_ = others ? std::min(limit_, kStage / 2) : limit_;
  if (outgoing_ == nullptr) return;
  const uint32_t waiting = outgoing_->size();
  if (waiting < in_ring_) port_accepted_ = now_;
  in_ring_ = waiting;
  follow_relay(static_cast<uint16_t>(passed_ - waiting));
}

// `left_ring`: frames that the relay has taken from the ring.
void TransmitStage::follow_relay(uint16_t left_ring) {
  const auto passed = static_cast<uint32_t>(port_state_.load(std::memory_order_relaxed) >> 1);
  if (relay_waits() && static_cast<int32_t>(passed - relay_goal_) < 0) return;
  relay_passed_ = relay_mark_;
  relay_mark_ = left_ring;
  relay_goal_ = passed + kRelayed;
}

bool TransmitStage::has_space() {
  if (staged_count_ >= own_limit_) flush();
  if (staged_count_ < own_limit_) return true;
  blocked_ = true;
  return false;
}

rte_mbuf* TransmitStage::allocate_direct(const MacAddress& to, uint32_t bytes) {
  if (!has_space()) return nullptr;
  const PortQueue::DirectBuffer buffer = queue_->take_direct(to, bytes, now_);
  if (buffer.outcome == PortQueue::DirectBuffer::Outcome::kUnavailable) return allocate();
  if (buffer.frame == nullptr) {
    flush();  // the staged frames may occupy the receiver's memory
    blocked_ = receiver_full_ = true;
  }
  return buffer.frame;
}

rte_mbuf* TransmitStage::allocate() {
  if (!has_space()) return nullptr;
  rte_mbuf* frame = buffers_.take();
  if (frame == nullptr) {
    counters_.add(Counter::kTxNoBuffer);
    blocked_ = true;
  }
  return frame;
}

void TransmitStage::send(rte_mbuf* frame) {
  turn_bytes_ += frame->pkt_len;
  counters_.add(Counter::kTxFrames);
  if (!RTE_MBUF_HAS_EXTBUF(frame)) {  // a direct buffer always goes to the receiver for which it was taken
    uint64_t first = 0;               // destination, and two bytes of the source
    std::memcpy(&first, rte_pktmbuf_mtod(frame, const void*), sizeof first);
    if (((first ^ own_mac_) << 16) == 0) [[unlikely]]
      return loop_back(frame);
  }
  staged_[staged_count_++] = frame;
}

void TransmitStage::loop_back(rte_mbuf* frame) {
  loopback_.push(frame);
  if (loopback_.full()) blocked_ = true;
}

bool TransmitStage::send_first(std::span<const uint8_t> bytes) {
  rte_mbuf* frame = staged_count_ < staged_.size() ? buffers_.take() : nullptr;
  if (frame == nullptr) return false;
  std::memcpy(rte_pktmbuf_append(frame, static_cast<uint16_t>(bytes.size())), bytes.data(), bytes.size());
  const auto place = staged_.begin() + static_cast<ptrdiff_t>(staged_first_++);
  const auto end = staged_.begin() + static_cast<ptrdiff_t>(staged_count_++);
  std::move_backward(place, end, end + 1);
  *place = frame;
  counters_.add(Counter::kTxFrames);
  return true;
}

bool TransmitStage::relay() {
  const uint64_t sent = counters_.get(Counter::kTxFrames);
  bool worked = false;
  for (size_t i = 0; i < relayed_.size(); ++i) {
    if (staged_count_ >= own_limit_) flush();
    const bool full = staged_count_ >= own_limit_;
    const size_t most = full ? std::min<size_t>(kStage / 2, sent - sent_at_relay_) : kStage / 2;
    if (staged_count_ > kStage / 2 || most == 0) break;
    // Continues after the worker at which a full port stopped it.
    next_relayed_ = (next_relayed_ + 1) % relayed_.size();
    const uint32_t count = relayed_[next_relayed_]->pop({&staged_[staged_count_], most});
    staged_count_ += count;
    worked |= count > 0;
  }
  if (worked) sent_at_relay_ = sent;
  return worked;
}

bool TransmitStage::flush_staged() {
  const std::span<rte_mbuf*> staged(staged_.data(), staged_count_);
  const uint32_t taken = outgoing_ != nullptr ? outgoing_->push(staged) : queue_->tx_burst(staged, now_);
  trace::burst_sent(static_cast<uint32_t>(staged.size()), taken);
  std::move(staged_.begin() + taken, staged_.begin() + static_cast<ptrdiff_t>(staged_count_),
            staged_.begin());
  staged_count_ -= taken;
  passed_ = static_cast<uint16_t>(passed_ + taken);
  port_passed_ += taken;
  staged_first_ -= std::min<size_t>(staged_first_, taken);
  if (taken > 0 && in_ring_ == 0) port_accepted_ = now_;
  if (outgoing_ != nullptr) in_ring_ += taken;
  if (staged_count_ == 0 || !sends_direct_) return taken > 0;
  return flush_direct() || taken > 0;
}

// Sends the direct buffers of the stage. A refused frame may wait for
// space that later direct buffers occupy until they are sent.
bool TransmitStage::flush_direct() {
  std::array<rte_mbuf*, kStage + kFirst> direct{};
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
  const uint32_t taken = queue_->tx_burst({direct.data(), count}, now_);
  trace::burst_sent(static_cast<uint32_t>(count), taken);
  std::copy(direct.begin() + taken, direct.begin() + static_cast<ptrdiff_t>(count),
            staged_.begin() + static_cast<ptrdiff_t>(others));
  staged_count_ = others + count - taken;
  passed_ = static_cast<uint16_t>(passed_ + taken);
  return taken > 0;
}

}  // namespace roci
