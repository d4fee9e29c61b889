// Tests of reload: changes of a switch under traffic, in virtual time, and the command slot that delivers the changes.
#include <thread>

#include "roci-switch/command_slot.hpp"
#include "support/ports/line_rate_source.hpp"
#include "support/process/telemetry_socket.hpp"
#include "switch/switch_bench.hpp"

namespace roci {
namespace {

constexpr uint8_t kEct = 2;

class ReloadUnderTraffic : public SwitchTest {
 protected:
  void SetUp() override {
    test::start_with_telemetry();
    make_pool();
  }
  void TearDown() override {
    sources_.clear();
    SwitchTest::TearDown();
  }
  // Two hosts send more to host 2 than its port carries, so a queue builds up.
  void congest() {
    SwitchConfig config = ports(3);
    config.ports[2].rate = 1_Gbps;
    config.ports[2].queue = 64_MiB;
    config.ports[2].queue_frames = 1U << 20;
    make(config);
    runner_.add(slot_);
    introduce({0, 1, 2});
    for (size_t i = 0; i < 2; ++i) {
      test::LineRateSource::Config source;
      source.rate = 600_Mbps;
      source.frame = {
          .destination = host_mac(2), .source = host_mac(i), .traffic_class = kEct, .payload = 1000};
      source.count = kFrames;
      source.begin = runner_.now();
      sources_.push_back(std::make_unique<test::LineRateSource>(links_[i]->a(), pool_, source));
      runner_.add(*sources_.back());
    }
  }
  [[nodiscard]] uint64_t sent() const { return sources_[0]->sent() + sources_[1]->sent(); }
  [[nodiscard]] const SwitchClassCounters& traffic() const { return switch_->counters(2).classes[0]; }
  static ClassConfigs marking_from(Bytes kmin) {
    ClassConfigs classes;
    classes[0].aqm.mark = {.kmin = kmin, .kmax = kmin, .pmax = 1};
    return classes;
  }

  static constexpr uint64_t kFrames = 2000;
  CommandSlot slot_;
  std::vector<std::unique_ptr<test::LineRateSource>> sources_;
};

TEST_F(ReloadUnderTraffic, new_curves_apply_at_once_without_frame_loss) {
  congest();
  wait(5ms);
  const uint64_t queue = traffic().queue_bytes;
  ASSERT_GT(queue, 50'000U) << "there is something to lose";
  EXPECT_EQ(traffic().marked, 0U);

  // The first change marks all later frames; the second change stops marking.
  const uint64_t arrived_before = switch_->counters(0).rx_packets + switch_->counters(1).rx_packets;
  Command marks{[&] { return !switch_->configure_marking(2, marking_from(Bytes{1})).has_value(); }};
  ASSERT_TRUE(slot_.post(marks));
  settle();
  EXPECT_TRUE(marks.done());
  wait(2ms);
  const uint64_t marked = traffic().marked;
  EXPECT_EQ(marked, switch_->counters(0).rx_packets + switch_->counters(1).rx_packets - arrived_before);
  EXPECT_GT(marked, 100U);

  Command none{[&] { return !switch_->configure_marking(2, ClassConfigs{}).has_value(); }};
  ASSERT_TRUE(slot_.post(none));
  wait(1s);
  EXPECT_EQ(traffic().marked, marked);
  EXPECT_EQ(sent(), 2 * kFrames);
  EXPECT_EQ(heard(2).size(), 2 * kFrames) << "all that was sent, through both changes";
  for (size_t port = 0; port < 3; ++port)
    EXPECT_EQ(switch_->counters(port).dropped() - dropped(port, DropReason::kSamePort), 0U);
}

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

// Wakeup stub without a port.
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
