#include "base/tick_clock.hpp"

#include <gtest/gtest.h>

#include <ctime>

namespace roci {
namespace {

// Reads both until so much time has gone by. How long a thread is stopped in between is not for us to say, so the clock is
// held between two readings of the system's.
TEST(TickClock, stays_with_the_systems_clock_and_never_goes_back) {
  TickClock clock;
  const Nanos end = TickClock::read_system() + Nanos{30'000'000};
  Nanos last{0};
  uint64_t readings = 0;
  Nanos before{0};
  while ((before = TickClock::read_system()) < end) {
    const Nanos now = clock.now();
    const Nanos after = TickClock::read_system();
    ASSERT_GE(now, last);
    // Two settings, each off by what a reading of both takes, make a rate that is off by their sum per millisecond.
    ASSERT_GE(now, before - Nanos{20'000}) << "behind, reading " << readings;
    ASSERT_LE(now, after + Nanos{20'000}) << "ahead, reading " << readings;
    last = now;
    ++readings;
  }
  EXPECT_GT(readings, 100U);
}

TEST(TickClock, is_right_after_a_long_silence) {
  TickClock clock;
  clock.now();
  for (int i = 0; i < 3; ++i) {
    const timespec pause{0, 12'000'000};
    nanosleep(&pause, nullptr);
    const Nanos before = TickClock::read_system();
    const Nanos now = clock.now();
    EXPECT_GE(now, before - Nanos{20'000});
    EXPECT_LE(now, TickClock::read_system() + Nanos{20'000});
  }
}

TEST(TickClock, of_two_threads_tells_the_same_time) {
  TickClock one, other;
  for (int i = 0; i < 200; ++i) {
    const timespec pause{0, 50'000};
    nanosleep(&pause, nullptr);
    const Nanos first = one.now();
    const Nanos second = other.now();
    EXPECT_GE(second, first - Nanos{20'000});
  }
}

}  // namespace
}  // namespace roci
