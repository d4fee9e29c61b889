// Commands for the polling thread of a switch.
#include "roci-switch/command_slot.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace roci {
namespace {

TEST(CommandSlot, executes_one_step_of_a_command_per_round) {
  CommandSlot slot;
  int steps = 0;
  Command command{[&steps] { return ++steps < 3; }};
  ASSERT_TRUE(slot.post(command));
  Command other{[] { return false; }};
  EXPECT_FALSE(slot.post(other)) << "there is one";
  for (int round = 1; round <= 3; ++round) {
    EXPECT_FALSE(command.done());
    EXPECT_EQ(slot.next_deadline(), 0ns) << "more to do";
    EXPECT_TRUE(slot.poll(0ns));
    EXPECT_EQ(steps, round);
  }
  EXPECT_TRUE(command.done());
  EXPECT_FALSE(slot.poll(0ns));
  EXPECT_TRUE(slot.post(other));
  EXPECT_TRUE(slot.poll(0ns));
}

// Counts the wake-ups of the polling thread.
class CountedWakes final : public PortWakeup {
 public:
  [[nodiscard]] uint32_t value(Waiter) const override { return 0; }
  uint32_t arm(Waiter, WakeFor) override { return 0; }
  void disarm(Waiter) override {}
  [[nodiscard]] bool has_frames() override { return false; }
  void wait(Waiter, uint32_t, Nanos) override {}
  void wake(Waiter waiter) override { wakes += waiter == Waiter::kApplication ? 1 : 0; }
  void hold_wakes() override {}
  void release_wakes() override {}

  unsigned wakes = 0;
};

TEST(CommandSlot, delivery_wakes_a_polling_thread_that_sleeps) {
  CountedWakes wakeup;
  CommandSlot slot(&wakeup);
  EXPECT_FALSE(slot.deliver([] { return false; }, Nanos{0})) << "nobody polls";
  EXPECT_EQ(wakeup.wakes, 1U);
}

TEST(CommandSlot, has_no_deadline_while_empty) {
  CommandSlot slot;
  EXPECT_EQ(slot.next_deadline(), kNever);
  EXPECT_FALSE(slot.poll(0ns));
}

TEST(CommandSlot, undelivered_command_is_withdrawn_without_effect) {
  CommandSlot slot;
  bool changed = false;
  const auto change = [&changed] {
    changed = true;
    return false;
  };
  EXPECT_FALSE(slot.deliver(change, 1ms));
  EXPECT_FALSE(slot.poll(0ns));
  EXPECT_FALSE(changed);
  Command command{change};
  EXPECT_TRUE(slot.post(command));
  EXPECT_EQ(slot.next_deadline(), 0ns);
  EXPECT_TRUE(slot.withdraw(command));
  EXPECT_TRUE(slot.post(command));
  EXPECT_TRUE(slot.poll(0ns));
  EXPECT_TRUE(command.done());
  EXPECT_TRUE(changed);
  EXPECT_FALSE(slot.withdraw(command)) << "it is done";
}

// Also a test for ThreadSanitizer: several threads change the state of a polling thread.
TEST(CommandSlot, commands_of_several_threads_run_serially_on_the_polling_thread) {
  CommandSlot slot;
  uint64_t polled_ones = 0;  // Not atomic: only the polling thread accesses it.
  std::atomic<bool> stop{false};
  std::thread polling([&] {
    while (!stop.load(std::memory_order_relaxed)) slot.poll(0ns);
  });
  constexpr uint64_t kEach = 50;
  std::vector<std::thread> senders;
  for (int i = 0; i < 3; ++i) {
    senders.emplace_back([&] {
      for (uint64_t n = 0; n < kEach; ++n) {
        unsigned steps = 0;
        EXPECT_TRUE(slot.deliver(
            [&] {
              ++polled_ones;
              return ++steps < 3;
            },
            10s));
        EXPECT_EQ(steps, 3U);
      }
    });
  }
  for (std::thread& sender : senders) sender.join();
  stop = true;
  polling.join();
  EXPECT_EQ(polled_ones, 3 * 3 * kEach);
}

}  // namespace
}  // namespace roci
