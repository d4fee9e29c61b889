#include "lab/execution/realtime_throttle.hpp"

#include <rte_pause.h>

#include <algorithm>
#include <ctime>

namespace roci::lab {

void RealtimeThrottle::start(Nanos now) {
  ahead_ = clock_.now() - now;
  start_ = at_ = now;
  late_ = most_ = Nanos{0};
  much_ = sum_ = 0;
  times_ = {};
}

void RealtimeThrottle::rest(Nanos until) {
  // kOversleep: time by which a sleep may be too long. kMax: limit of a sleep, so that signals are detected soon.
  constexpr Nanos kOversleep = 150us, kMax = 10ms;
  const Nanos left = until - now();
  if (left <= kOversleep) {
    rte_pause();
    return;
  }
  const timespec wait{0, static_cast<long>(std::min(left - kOversleep, kMax).count())};
  clock_nanosleep(CLOCK_MONOTONIC, 0, &wait, nullptr);  // a signal ends it early, as intended
}

void RealtimeThrottle::on_round_start(Nanos at, Nanos now) {
  count(at);
  at_ = at;
  late_ = std::max(now - at, Nanos{0});
  most_ = std::max(most_, late_);
}

void RealtimeThrottle::count(Nanos until) {
  const Nanos passed = std::max(until - at_, Nanos{0});
  const Nanos behind = std::min(passed, late_);
  times_.add(static_cast<uint64_t>(late_.count()), static_cast<uint64_t>(behind.count()));
  times_.add(0, static_cast<uint64_t>((passed - behind).count()));
  sum_ += static_cast<double>(late_.count()) * static_cast<double>(behind.count());
  if (late_ > ScheduleLag::kMuch) much_ += static_cast<double>(behind.count());
}

ScheduleLag RealtimeThrottle::lateness(Nanos end) {
  count(end);
  at_ = std::max(at_, end);
  late_ = Nanos{0};
  const auto all = std::max(1.0, static_cast<double>((at_ - start_).count()));
  return {sum_ / all, times_.at(0.99), static_cast<uint64_t>(most_.count()), much_ / all};
}

}  // namespace roci::lab
