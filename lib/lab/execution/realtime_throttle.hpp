// Pace of virtual time in real-time mode: prevents work before its time by the clock, and measures how late work is.
#pragma once

#include <cstdint>

#include "base/time/tick_clock.hpp"
#include "base/types.hpp"
#include "lab/results/histogram.hpp"

namespace roci::lab {

// Delay of virtual time against the clock, over virtual time. Work that starts late by L counts as a delay of L for the
// following time L, or until the next work starts.
struct ScheduleLag {
  static constexpr Nanos kMuch = 100us;

  double mean_ns = 0;
  // The delay was not larger for 99 % of the time.
  uint64_t p99_ns = 0;
  uint64_t most_ns = 0;  // maximum
  double part = 0;       // fraction of the time with a delay above kMuch
};

// Owned by one thread.
class RealtimeThrottle {
 public:
  // Ties virtual time to the clock from `now` on, and resets the measurement.
  void start(Nanos now);
  // Virtual time by the clock.
  [[nodiscard]] Nanos now() { return clock_.now() - ahead_; }
  // Waits until `until` or less.
  void rest(Nanos until);
  // Records that work due at `at` starts when the clock is at `now`.
  void on_round_start(Nanos at, Nanos now);

  // `end`: the current virtual time.
  [[nodiscard]] ScheduleLag lateness(Nanos end);

 private:
  void count(Nanos until);

  TickClock clock_;
  Nanos ahead_{0};  // clock minus virtual time
  Nanos start_{0};
  Nanos at_{0};    // due time of the last work
  Nanos late_{0};  // its delay
  Nanos most_{0};
  double much_ = 0, sum_ = 0;
  Histogram times_;  // delay in ns, weighted by time in ns
};

}  // namespace roci::lab
