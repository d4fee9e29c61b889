#include "port/realtime_runner.hpp"

#include <gtest/gtest.h>
#include <rte_lcore.h>
#include <sched.h>

#include <atomic>
#include <string>
#include <thread>

#include "port/dpdk/eal.hpp"

namespace roci {
namespace {

// Records the times, the thread and the permitted cores of its polls.
class RecordingPoller : public Poller {
 public:
  explicit RecordingPoller(std::vector<const RecordingPoller*>* order = nullptr) : order_(order) {}
  bool poll(Nanos now) override {
    if (now < last_) went_back_ = true;
    last_ = now;
    lcore_ = rte_lcore_id();
    CPU_ZERO(&cores_);
    sched_getaffinity(0, sizeof cores_, &cores_);
    if (order_ != nullptr) order_->push_back(this);
    polls_.fetch_add(1, std::memory_order_release);
    return busy_;
  }
  [[nodiscard]] Nanos next_deadline() const override { return deadline_; }
  [[nodiscard]] std::string_view name() const override { return "probe"; }

  void wait_for(uint64_t polls) const {
    while (polls_.load(std::memory_order_acquire) < polls) sched_yield();
  }

  std::atomic<uint64_t> polls_{0};
  std::vector<const RecordingPoller*>* order_;
  Nanos last_{0};
  unsigned lcore_ = LCORE_ID_ANY;
  cpu_set_t cores_{};
  bool went_back_ = false;
  bool busy_ = false;
  Nanos deadline_ = kNever;
};

class RealtimeRunnerTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(start_eal()); }
};

TEST_F(RealtimeRunnerTest, polls_on_threads_registered_with_dpdk_until_stopped) {
  for (const IdlePolicy idle : {IdlePolicy::kSpin, IdlePolicy::kYield, IdlePolicy::kSleep}) {
    SCOPED_TRACE(idle_policy_name(idle));
    RecordingPoller a, b, c;
    RealtimeRunner runner{{{.name = "one", .pollers = {&a, &b}, .core = {}, .idle = idle},
                           {.name = "two", .pollers = {&c}, .core = {}, .idle = idle}}};
    const Status started = runner.start();
    ASSERT_TRUE(started) << started.error().message;
    EXPECT_FALSE(runner.start()) << "a second start must say that it runs";
    a.wait_for(100);
    c.wait_for(100);
    runner.stop();
    EXPECT_EQ(a.lcore_, b.lcore_);
    EXPECT_NE(a.lcore_, c.lcore_);
    EXPECT_NE(a.lcore_, LCORE_ID_ANY);
    EXPECT_NE(c.lcore_, LCORE_ID_ANY);
    EXPECT_FALSE(a.went_back_ || b.went_back_ || c.went_back_);
    EXPECT_EQ(a.last_, b.last_) << "one time stamp per round";
    const uint64_t polls = a.polls_;
    std::this_thread::sleep_for(20ms);
    EXPECT_EQ(polls, a.polls_) << "no poll after the stop";
  }
}

TEST_F(RealtimeRunnerTest, pins_a_thread_to_its_core) {
  const int core = sched_getcpu();  // a core that this process may use
  RecordingPoller a;
  RealtimeRunner runner{{{.name = "pinned", .pollers = {&a}, .core = static_cast<unsigned>(core)}}};
  ASSERT_TRUE(runner.start());
  a.wait_for(50);
  runner.stop();
  EXPECT_EQ(CPU_COUNT(&a.cores_), 1);
  EXPECT_TRUE(CPU_ISSET(core, &a.cores_));
}

TEST_F(RealtimeRunnerTest, start_fails_for_a_core_that_does_not_exist) {
  RecordingPoller a, b;
  RealtimeRunner runner{{{.name = "good", .pollers = {&a}}, {.name = "far", .pollers = {&b}, .core = 1000}}};
  const Status started = runner.start();
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().message.rfind("thread 'far': the thread cannot be pinned to core 1000", 0), 0U)
      << started.error().message;
  EXPECT_FALSE(runner.running());
  EXPECT_EQ(b.polls_, 0U);
}

TEST_F(RealtimeRunnerTest, step_polls_each_poller_once_in_order) {
  std::vector<const RecordingPoller*> order;
  RecordingPoller a{&order}, b{&order}, c{&order};
  b.busy_ = true;
  RealtimeRunner runner{{{.name = "one", .pollers = {&b, &a}}, {.name = "two", .pollers = {&c}}}};
  EXPECT_TRUE(runner.step());
  EXPECT_EQ(order, (std::vector<const RecordingPoller*>{&b, &a, &c}));
  b.busy_ = false;
  EXPECT_FALSE(runner.step());
}

TEST_F(RealtimeRunnerTest, sleeping_thread_wakes_for_a_deadline) {
  // Without the deadline the thread would soon sleep for 10 s at a time, and the test would time out.
  class Alarm : public RecordingPoller {
   public:
    bool poll(Nanos now) override {
      deadline_ = now + 1ms;
      return RecordingPoller::poll(now);
    }
  } alarm;
  RealtimeRunner runner{
      {{.name = "alarm", .pollers = {&alarm}, .core = {}, .idle = IdlePolicy::kSleep, .longest_sleep = 10s}}};
  const Nanos begin = monotonic_now();
  ASSERT_TRUE(runner.start());
  alarm.wait_for(200);
  runner.stop();
  EXPECT_LT(monotonic_now() - begin, 8s);
}

}  // namespace
}  // namespace roci
