#include "switch/qos/scheduler.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

namespace roci {
namespace {

// A class that is often paused does not save up the bytes that it could not send.
TEST(Scheduler, class_that_was_paused_gets_no_more_than_its_share_afterwards) {
  ClassConfigs classes;
  classes[3].weight = 10;
  Scheduler scheduler(classes);
  const auto length = [](uint8_t) -> uint64_t { return 1000; };
  constexpr uint8_t kBoth = 1U << 0 | 1U << 3, kPaused = 1U << 0;
  for (int pause = 0; pause < 1000; ++pause) {
    for (int open = 0; open < 3; ++open) scheduler.pick(kBoth, length);
    for (int shut = 0; shut < 3; ++shut) EXPECT_EQ(scheduler.pick(kPaused, length), 0);
  }
  int in_a_row = 0, most = 0;
  for (int frame = 0; frame < 1000; ++frame) {
    in_a_row = scheduler.pick(kBoth, length) == 3 ? in_a_row + 1 : 0;
    most = std::max(most, in_a_row);
  }
  EXPECT_LE(most, 10 * 2048 / 1000 + 1);
}

// The default weight of the other classes must not make the quanta of the two classes large.
TEST(Scheduler, weights_of_60_and_40_alternate_after_a_few_frames) {
  ClassConfigs classes;
  classes[3].weight = 60;
  classes[4].weight = 40;
  Scheduler scheduler(classes);
  const auto length = [](uint8_t) -> uint64_t { return 1000; };
  int in_a_row = 0, most = 0, of_first = 0;
  uint8_t last = 0;
  for (int frame = 0; frame < 100'000; ++frame) {
    const uint8_t next = scheduler.pick(1U << 3 | 1U << 4, length);
    in_a_row = next == last ? in_a_row + 1 : 1;
    most = std::max(most, in_a_row);
    of_first += next == 3 ? 1 : 0;
    last = next;
  }
  EXPECT_LE(most, 9);
  EXPECT_NEAR(of_first, 60'000, 20);
}

// With the largest weight, the quanta of the other classes are a few bytes.
TEST(Scheduler, classes_with_quanta_below_a_frame_get_their_shares) {
  ClassConfigs classes;
  classes[3].weight = 10'000;
  classes[5].weight = 2;
  classes[6].weight = 4;
  Scheduler scheduler(classes);
  std::array<uint64_t, kTrafficClasses> bytes{};
  uint64_t asked = 0;
  const auto length = [&asked](uint8_t c) -> uint64_t {
    ++asked;
    return c == 5 ? 9000 : 1500;
  };
  constexpr int kFrames = 6000;
  for (int frame = 0; frame < kFrames; ++frame) {
    const uint8_t next = scheduler.pick(1U << 5 | 1U << 6, length);
    bytes[next] += length(next);
  }
  EXPECT_NEAR(static_cast<double>(bytes[6]) / static_cast<double>(bytes[5]), 2, 0.02);
  EXPECT_LT(asked, 20U * kFrames);
}

}  // namespace
}  // namespace roci
