// Number of queue pairs that have recently received requests. A receiver advertises it to its senders, so that each can
// use its share of the receiver's link (NFLOWS).
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <vector>

#include "base/types.hpp"

namespace roci {

// Flow count of one worker. Written by the worker, read by all workers.
class FlowCount {
 public:
  static constexpr Nanos kEpoch{1'000'000};

  // A queue pair has received a request. `seen` is its epoch of the last count, initially 0.
  void note(uint32_t& seen, Nanos now) {
    advance(now);
    if (seen == epoch_) return;
    seen = epoch_;
    ++current_;
    publish();
  }
  // The larger count of the current and the previous epoch.
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

// The flow counts of all workers of a host.
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
