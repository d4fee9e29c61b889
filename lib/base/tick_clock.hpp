// The monotonic clock, read from the processor's tick counter: a third of the time that the system's own call takes, which
// a poll loop does every round. Once in a millisecond it is set by the system's clock again, and learns how long a tick is.
//
// Of one thread, or of whoever holds what it belongs to. Never goes back. Between two settings it is off by what the rate
// changed, below a nanosecond per 10 us of what NTP slews. Where ticks do not keep their rate it is the system's clock.
#pragma once

#include <cstdint>

#include "base/types.hpp"

namespace roci {

class TickClock {
 public:
  Nanos now() {
    if (!kSteady) return read_system();
    const uint64_t ticks = __builtin_ia32_rdtsc();
    const uint64_t since = ticks - set_at_;
    if (since >= set_again_after_) return set();
    const int64_t now = set_to_ + static_cast<int64_t>(since * nanos_per_tick_ >> kFraction);
    if (now > last_) last_ = now;
    return Nanos{last_};
  }

  // CLOCK_MONOTONIC.
  static Nanos read_system();

 private:
  static const bool kSteady;  // the counter runs at one rate, on all cores
  static constexpr unsigned kFraction = 32;
  static constexpr int64_t kSetEvery = 1'000'000;  // ns

  Nanos set();

  uint64_t set_at_ = 0;           // ticks
  uint64_t set_again_after_ = 0;  // ticks; 0 until the rate is known
  uint64_t nanos_per_tick_ = 0;   // with kFraction bits behind the point
  int64_t set_to_ = 0;            // ns
  int64_t last_ = 0;              // ns
};

}  // namespace roci
