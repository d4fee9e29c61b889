#include "switch/qos/scheduler.hpp"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace roci
