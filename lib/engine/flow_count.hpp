// How many queue pairs of a worker have received requests of late: what a receiver tells its senders, so that each can
// take its share of the receiver's link (NFLOWS).
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <vector>

#include "base/types.hpp"

namespace roci {

// Written by one worker, read by all.
class FlowCount {
 public:
  static constexpr Nanos kEpoch{1'000'000};

  // A queue pair has received; `seen` is its own memory of the last time it was counted, 0 at first.
  void note(uint32_t& seen, Nanos now) {
    advance(now);
    if (seen == epoch_) return;
    seen = epoch_;
    ++current_;
    publish();
  }
  // The larger of the epoch under way and the one before.
  [[nodiscard]] uint32_t count() const { return published_.load(std::memory_order_relaxed); }
  void advance(Nanos now) {
    if (now - start_ < kEpoch) return;
    previous_ = now - start_ < 2 * kEpoch ? current_ : 0;
    current_ = 0;
    start_ = now;
    if (++epoch_ == 0) epoch_ = 1;
    publish();
  }

 private:
  void publish() { published_.store(std::max(current_, previous_), std::memory_order_relaxed); }

  Nanos start_{0};
  uint32_t epoch_ = 1;
  uint32_t current_ = 0, previous_ = 0;
  std::atomic<uint32_t> published_{0};
};

// Those of all workers of a host.
class FlowCounts {
 public:
  explicit FlowCounts(uint32_t workers) : of_worker_(workers) {}
  [[nodiscard]] FlowCount& of(uint32_t worker) { return of_worker_[worker]; }
  [[nodiscard]] uint32_t sum() const {
    uint32_t sum = 0;
    for (const FlowCount& one : of_worker_) sum += one.count();
    return sum;
  }

 private:
  std::vector<FlowCount> of_worker_;
};

}  // namespace roci
