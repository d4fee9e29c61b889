#include "port/sim/faulty_port.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "port/sim/bit_errors.hpp"

namespace roci {
namespace {

constexpr unsigned kBitsSpoilt = 4;  // maximum per frame, as in SimFaults.

// Each fault has its own generator, so that the choice of corrupted
// frames and bits does not depend on which frames are lost.
constexpr uint64_t kCorruptionSeed = 0x9e3779b97f4a7c15;
constexpr uint64_t kBitsSeed = 0xd1b54a32d192ed03;
constexpr uint64_t kDuplicationSeed = 0x8cb92ba72f3d8dd7;
constexpr uint64_t kReorderingSeed = 0x2545f4914f6cdd1d;
constexpr uint64_t kOvertakingSeed = 0xbf58476d1ce4e5b9;

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
      duplication_(0, seed ^ kDuplicationSeed),
      reordering_(0, seed ^ kReorderingSeed),
      bits_(seed ^ kBitsSeed),
      reorder_rng_(seed ^ kOvertakingSeed) {
  set_faults(faults);
}

FaultyPort::~FaultyPort() {
  while (!held_.empty()) rte_pktmbuf_free(held_.pop().frame);
  rte_pktmbuf_free(late_.frame);
}

void FaultyPort::set_faults(const PortFaults& faults) {
  loss_.set(faults.loss);
  corruption_.set(faults.corruption);
  duplication_.set(faults.duplication);
  reordering_.set(faults.reordering);
  rearranges_ = faults.duplication > 0 || faults.reordering > 0;
  delay_ = std::clamp(faults.delay, Nanos{0}, kMaxFaultDelay);
  published_loss_.store(faults.loss, std::memory_order_relaxed);
  published_corruption_.store(faults.corruption, std::memory_order_relaxed);
  published_duplication_.store(faults.duplication, std::memory_order_relaxed);
  published_reordering_.store(faults.reordering, std::memory_order_relaxed);
  published_delay_.store(delay_.count(), std::memory_order_relaxed);
  down_.store(faults.down, std::memory_order_relaxed);
}

PortFaults FaultyPort::faults() const {
  return {published_loss_.load(std::memory_order_relaxed),
          published_corruption_.load(std::memory_order_relaxed),
          published_duplication_.load(std::memory_order_relaxed),
          published_reordering_.load(std::memory_order_relaxed),
          Nanos{published_delay_.load(std::memory_order_relaxed)},
          down_.load(std::memory_order_relaxed)};
}

uint16_t FaultyPort::rx_burst(std::span<rte_mbuf*> out, Nanos now) {
  if (delay_ == Nanos{0} && !rearranges_ && held_.empty() && late_.frame == nullptr) {
    // A burst may be lost completely while more frames wait: returning 0 would mean that no frame has arrived.
    for (unsigned bursts = 0; bursts < kMaxBursts; ++bursts) {
      const uint16_t count = port_->rx_burst(out, now);
      const uint16_t kept = corrupt(out.first(count));
      if (kept > 0 || count < out.size()) return kept;
    }
    return 0;
  }
  hold(now);
  uint16_t count = 0;
  while (count < out.size() && !held_.empty() && held_.front().due <= now) out[count++] = held_.pop().frame;
  return count;
}

// Receives the frames that have arrived and queues them for later delivery.
void FaultyPort::hold(Nanos now) {
  std::array<rte_mbuf*, kBurst> frames;
  for (unsigned bursts = 0; bursts < kMaxBursts; ++bursts) {
    const uint16_t count = port_->rx_burst(frames, now);
    const uint16_t kept = corrupt({frames.data(), count});
    for (uint16_t i = 0; i < kept; ++i) rearrange(frames[i], now);
    if (count < frames.size()) break;
  }
  if (late_.frame != nullptr && late_.until <= now) put(std::exchange(late_.frame, nullptr), now);
}

// Queues a frame, or holds it back until later frames have overtaken it; queues a duplicate first if one is due.
void FaultyPort::rearrange(rte_mbuf* frame, Nanos now) {
  if (duplication_.happens()) {
    rte_mbuf* copy = copies_ == nullptr ? nullptr : rte_pktmbuf_copy(frame, copies_->get(), 0, UINT32_MAX);
    if (copy != nullptr) {
      bump(counters_.duplicated);
      put(copy, now);
    } else {
      bump(counters_.no_buffer);
    }
  }
  const bool is_late = reordering_.happens();
  if (is_late && late_.frame == nullptr) {
    late_ = {frame, 1 + static_cast<unsigned>(reorder_rng_.below(kMaxReorderDistance)), now + kMaxWait};
    return;
  }
  put(frame, now);
  if (late_.frame == nullptr || --late_.frames_to_pass > 0) return;
  bump(counters_.reordered);
  put(std::exchange(late_.frame, nullptr), now);
}

// Queued frames keep their order, even if the delay becomes shorter.
void FaultyPort::put(rte_mbuf* frame, Nanos now) {
  if (held_.size() == kMaxHeld) {
    bump(counters_.delay_full);
    rte_pktmbuf_free(frame);
    return;
  }
  held_.push({now + delay_, frame});
  if (delay_ > Nanos{0}) bump(counters_.delayed);
}

// Moves the frames that are not lost to the front and returns their number.
uint16_t FaultyPort::corrupt(std::span<rte_mbuf*> frames) {
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
  Nanos next = port_->next_arrival();
  if (!held_.empty()) next = std::min(next, held_.front().due);
  if (late_.frame != nullptr) next = std::min(next, late_.until);
  return next;
}

}  // namespace roci
