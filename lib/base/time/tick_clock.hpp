// Monotonic clock from the processor's counter: time stamp counter of x86-64, virtual counter of arm64. A reading costs a third of the system's call, once per round
// of a poll loop. The clock is synchronized with CLOCK_MONOTONIC once per millisecond and then measures the length of a
// tick.
//
// Owned by one thread, or by the owner of the object that contains it. Never goes back. Between two synchronizations
// the error is the change of the rate: below 1 ns per 10 us of NTP slewing. Without an invariant counter the system
// clock is read instead.
#pragma once

#include <cstdint>

#include "base/types.hpp"

namespace roci {

class TickClock {
 public:
  Nanos now() {
    if (!kSteady) return read_system();
    const uint64_t ticks = read_counter();
    const uint64_t since = ticks - set_at_;
    if (since >= set_again_after_) return set();
    const int64_t now = set_to_ + static_cast<int64_t>(since * nanos_per_tick_ >> kFraction);
    if (now > last_) last_ = now;
    return Nanos{last_};
  }

  static uint64_t read_counter() {
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#else
    uint64_t ticks = 0;
    asm volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
#endif
  }
  // CLOCK_MONOTONIC.
  static Nanos read_system();

 private:
  static const bool kSteady;  // the counter has a constant rate, equal on all cores
  static constexpr unsigned kFraction = 32;
  static constexpr int64_t kSetEvery = 1'000'000;  // ns

  Nanos set();

  uint64_t set_at_ = 0;           // ticks
  uint64_t set_again_after_ = 0;  // ticks; 0 until the rate is known
  uint64_t nanos_per_tick_ = 0;   // fixed point with kFraction fractional bits
  int64_t set_to_ = 0;            // ns
  int64_t last_ = 0;              // ns
};

}  // namespace roci
