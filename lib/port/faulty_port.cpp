#include "port/faulty_port.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "port/bit_errors.hpp"

namespace roci {
namespace {

constexpr unsigned kBitsSpoilt = 4;  // at most, of one frame; as SimFaults has it

// Generators of their own, so that which frames are spoilt, and where, does not depend on which are lost.
constexpr uint64_t kCorruptionSeed = 0x9e3779b97f4a7c15;
constexpr uint64_t kBitsSeed = 0xd1b54a32d192ed03;

}  // namespace

void RareEvent::set(double probability) {
  if (probability == probability_) return;
  probability_ = probability;
  gap_ = draw();
}

uint64_t RareEvent::draw() {
  constexpr uint64_t kForEver = std::numeric_limits<uint64_t>::max();
  if (probability_ <= 0) return kForEver;
  if (probability_ >= 1) return 0;
  const double gap = std::floor(std::log1p(-rng_.unit()) / std::log1p(-probability_));
  return gap < 1e18 ? static_cast<uint64_t>(gap) : kForEver;
}

FaultyPort::FaultyPort(std::unique_ptr<Port> port, const PortFaults& faults, uint64_t seed,
                       std::shared_ptr<MbufPool> copies)
    : port_(std::move(port)),
      copies_(std::move(copies)),
      loss_(0, seed),
      corruption_(0, seed ^ kCorruptionSeed),
      bits_(seed ^ kBitsSeed) {
  set_faults(faults);
}

FaultyPort::~FaultyPort() {
  while (!held_.empty()) rte_pktmbuf_free(held_.pop().frame);
}

void FaultyPort::set_faults(const PortFaults& faults) {
  loss_.set(faults.loss);
  corruption_.set(faults.corruption);
  delay_ = std::clamp(faults.delay, Nanos{0}, kLongestFaultDelay);
  told_loss_.store(faults.loss, std::memory_order_relaxed);
  told_corruption_.store(faults.corruption, std::memory_order_relaxed);
  told_delay_.store(delay_.count(), std::memory_order_relaxed);
  down_.store(faults.down, std::memory_order_relaxed);
}

PortFaults FaultyPort::faults() const {
  return {told_loss_.load(std::memory_order_relaxed), told_corruption_.load(std::memory_order_relaxed),
          Nanos{told_delay_.load(std::memory_order_relaxed)}, down_.load(std::memory_order_relaxed)};
}

uint16_t FaultyPort::rx_burst(std::span<rte_mbuf*> out, Nanos now) {
  if (delay_ == Nanos{0} && held_.empty()) {
    // When all of a burst are lost there may be more behind them: nothing says that nothing has arrived.
    for (unsigned bursts = 0; bursts < kMostBursts; ++bursts) {
      const uint16_t count = port_->rx_burst(out, now);
      const uint16_t kept = harm(out.first(count));
      if (kept > 0 || count < out.size()) return kept;
    }
    return 0;
  }
  hold(now);
  uint16_t count = 0;
  while (count < out.size() && !held_.empty() && held_.front().due <= now) out[count++] = held_.pop().frame;
  return count;
}

// Takes what has arrived by now, for later.
void FaultyPort::hold(Nanos now) {
  std::array<rte_mbuf*, kBurst> frames;
  for (unsigned bursts = 0; bursts < kMostBursts; ++bursts) {
    const uint16_t count = port_->rx_burst(frames, now);
    const uint16_t kept = harm({frames.data(), count});
    for (uint16_t i = 0; i < kept; ++i) {
      if (held_.size() == kMostHeld) {
        bump(counters_.delay_full);
        rte_pktmbuf_free(frames[i]);
        continue;
      }
      held_.push({now + delay_, frames[i]});  // nobody overtakes, not even when the delay has become shorter
      bump(counters_.delayed);
    }
    if (count < frames.size()) return;
  }
}

// Leaves those that are not lost at the front, and says how many they are.
uint16_t FaultyPort::harm(std::span<rte_mbuf*> frames) {
  const auto count = static_cast<uint16_t>(frames.size());
  if (down_.load(std::memory_order_relaxed)) [[unlikely]] {
    rte_pktmbuf_free_bulk(frames.data(), count);
    bump(counters_.down_rx, count);
    return 0;
  }
  if (count <= std::min(loss_.gap(), corruption_.gap())) {
    loss_.pass(count);
    corruption_.pass(count);
    return count;
  }
  uint16_t kept = 0;
  for (rte_mbuf* frame : frames) {
    const bool spoilt = corruption_.happens();
    if (loss_.happens()) {
      bump(counters_.lost);
      rte_pktmbuf_free(frame);
      continue;
    }
    if (spoilt) {
      frame = own_frame(frame, copies_ == nullptr ? nullptr : copies_->get());
      if (frame == nullptr) {
        bump(counters_.no_buffer);
        continue;
      }
      if (flip_random_bits(frame, kBitsSpoilt, bits_)) bump(counters_.corrupted);
    }
    frames[kept++] = frame;
  }
  return kept;
}

uint16_t FaultyPort::tx_burst(std::span<rte_mbuf*> frames, Nanos now) {
  if (!down_.load(std::memory_order_relaxed)) return port_->tx_burst(frames, now);
  const auto count = static_cast<uint16_t>(std::min<size_t>(frames.size(), UINT16_MAX));
  rte_pktmbuf_free_bulk(frames.data(), count);
  bump(counters_.down_tx, count);
  return count;
}

Nanos FaultyPort::next_arrival() const {
  return held_.empty() ? port_->next_arrival() : std::min(port_->next_arrival(), held_.front().due);
}

}  // namespace roci
