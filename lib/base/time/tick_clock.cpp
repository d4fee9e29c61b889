#include "base/time/tick_clock.hpp"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <algorithm>
#include <ctime>

namespace roci {

const bool TickClock::kSteady = [] {
#if defined(__x86_64__)
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(0x80000007, &a, &b, &c, &d) != 0 && (d >> 8 & 1) != 0;  // invariant TSC
#else
  return true;                                 // the architecture requires it
#endif
}();

Nanos TickClock::read_system() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);  // vDSO: no system call
  return Nanos{static_cast<int64_t>(t.tv_sec) * 1'000'000'000 + t.tv_nsec};
}

namespace {

struct Reading {
  uint64_t ticks;
  int64_t nanos;
};

// Reads both clocks at one time. If the thread was preempted in between, it reads them again.
Reading read_both() {
#if defined(__x86_64__)
  constexpr uint64_t kSurelyStopped = 50'000;  // ticks, above 10 us on any processor
#else
  constexpr uint64_t kSurelyStopped = 10'000;  // ticks, above 10 us at up to 1 GHz
#endif
  constexpr int kAttempts = 4;
  Reading reading{};
  for (int i = 0; i < kAttempts; ++i) {
    const uint64_t before = TickClock::read_counter();
    reading.nanos = TickClock::read_system().count();
    const uint64_t took = TickClock::read_counter() - before;
    reading.ticks = before + took / 2;
    if (took < kSurelyStopped) break;
  }
  return reading;
}

}  // namespace

// The tick rate is measured since the last synchronization, if that interval was long enough.
Nanos TickClock::set() {
  const auto [ticks, now] = read_both();
  const int64_t elapsed = now - set_to_;
  if (set_at_ == 0) {
    set_at_ = ticks;
    set_to_ = now;
  } else if (elapsed >= kSetEvery / 2 && ticks > set_at_) {
    const double per_tick = static_cast<double>(elapsed) / static_cast<double>(ticks - set_at_);
    nanos_per_tick_ = static_cast<uint64_t>(per_tick * static_cast<double>(uint64_t{1} << kFraction));
    set_again_after_ = (uint64_t{kSetEvery} << kFraction) / std::max<uint64_t>(nanos_per_tick_, 1);
    set_at_ = ticks;
    set_to_ = now;
  }
  last_ = std::max(last_, now);
  return Nanos{last_};
}

}  // namespace roci
