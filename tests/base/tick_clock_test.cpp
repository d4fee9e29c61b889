#include "base/time/tick_clock.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <ctime>
#include <thread>

namespace roci {
namespace {

// Reads both clocks for 30 ms. The thread may be preempted at any time, so the clock is compared with two readings of
// the system clock around it.
TEST(TickClock, follows_system_clock_and_is_monotonic) {
  TickClock clock;
  const Nanos end = TickClock::read_system() + Nanos{30'000'000};
  Nanos last{0};
  uint64_t readings = 0;
  Nanos before{0};
  while ((before = TickClock::read_system()) < end) {
    const Nanos now = clock.now();
    const Nanos after = TickClock::read_system();
    ASSERT_GE(now, last);
    // Two calibrations, each with the error of one reading of both clocks, cause a rate error of their sum per
    // millisecond.
    ASSERT_GE(now, before - Nanos{20'000}) << "behind, reading " << readings;
    ASSERT_LE(now, after + Nanos{20'000}) << "ahead, reading " << readings;
    last = now;
    ++readings;
  }
  EXPECT_GT(readings, 100U);
}

TEST(TickClock, is_accurate_after_a_long_pause) {
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

// Each thread has its own clock, and they read in turns. A reading must not be earlier than the previous one of the
// other thread.
TEST(TickClock, clocks_of_two_threads_agree) {
  constexpr uint32_t kReadings = 400;
  std::atomic<uint32_t> done{0};
  Nanos last{0};  // The threads write it in turn.
  const auto take_turns = [&](uint32_t first) {
    TickClock clock;
    for (uint32_t mine = first; mine < kReadings; mine += 2) {
      for (uint32_t seen = done.load(); seen != mine; seen = done.load()) done.wait(seen);
      const timespec pause{0, 50'000};
      nanosleep(&pause, nullptr);
      const Nanos now = clock.now();
      EXPECT_GE(now, last - Nanos{20'000}) << "reading " << mine;
      last = now;
      done.store(mine + 1);
      done.notify_all();
    }
  };
  std::thread other(take_turns, 1);
  take_turns(0);
  other.join();
}

}  // namespace
}  // namespace roci
