// The helper thread of a device whose application does not poll: calls of the control path wake it.
#include "device/host/waiting_helper.hpp"

#include <gtest/gtest.h>

#include <poll.h>
#include <rte_mbuf.h>

#include <array>
#include <atomic>
#include <condition_variable>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <span>

#include "cm/manager.hpp"
#include "threads/real_hosts.hpp"

namespace roci::test {
namespace {

// A wait without a deadline of the host lasts until wake(): the helper's own maximum of 1 s does not end it.
class PatientWakeup final : public PortWakeup {
 public:
  static constexpr Nanos kHelpersMaximum = 1s;

  [[nodiscard]] uint32_t value(Waiter waiter) const override {
    const std::lock_guard lock(mutex_);
    return words_[index(waiter)];
  }
  uint32_t arm(Waiter waiter, WakeFor) override { return value(waiter); }
  void disarm(Waiter) override {}
  [[nodiscard]] bool has_frames() override { return has_frames_; }
  void wait(Waiter waiter, uint32_t seen, Nanos limit) override {
    std::unique_lock lock(mutex_);
    const auto woken = [&] { return words_[index(waiter)] != seen; };
    if (limit < kHelpersMaximum) {
      slept_with_frames_ |= has_frames_ && waiter == Waiter::kHelper;
      changed_.notify_all();
      changed_.wait_for(lock, limit, woken);
      return;
    }
    asleep_with_[index(waiter)] = seen;
    changed_.notify_all();
    changed_.wait(lock, woken);
    asleep_with_[index(waiter)].reset();
  }
  void wake(Waiter waiter) override {
    const std::lock_guard lock(mutex_);
    ++words_[index(waiter)];
    changed_.notify_all();
  }
  void hold_wakes() override {}
  void release_wakes() override {}

  // Waits until the helper sleeps, with no wake-up on the way.
  [[nodiscard]] bool helper_sleeps() {
    std::unique_lock lock(mutex_);
    const size_t helper = index(Waiter::kHelper);
    return changed_.wait_for(lock, kPatience, [&] { return asleep_with_[helper] == words_[helper]; });
  }

  // Frames are present that no round of the helper gets, as while a preempted thread of the application has the device.
  // Waits until the helper sleeps nevertheless.
  [[nodiscard]] bool helper_sleeps_with_frames() {
    has_frames_ = true;
    wake(Waiter::kHelper);
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kPatience, [&] { return slept_with_frames_; });
  }

 private:
  static size_t index(Waiter waiter) { return static_cast<size_t>(waiter); }

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::atomic<bool> has_frames_{false};
  bool slept_with_frames_ = false;
  std::array<uint32_t, kWaiters> words_{};
  std::array<std::optional<uint32_t>, kWaiters> asleep_with_;  // value of the word
};

class QuietPort final : public Port {
 public:
  explicit QuietPort(PortWakeup& wakeup) : wakeup_(wakeup) { capabilities_.mtu = 1500; }
  uint16_t rx_burst(std::span<rte_mbuf*>, Nanos) override { return 0; }
  uint16_t tx_burst(std::span<rte_mbuf*> frames, Nanos) override {
    rte_pktmbuf_free_bulk(frames.data(), static_cast<unsigned>(frames.size()));
    return static_cast<uint16_t>(frames.size());
  }
  [[nodiscard]] Nanos next_arrival() const override { return kNever; }
  [[nodiscard]] const PortCapabilities& capabilities() const override { return capabilities_; }
  [[nodiscard]] MacAddress mac() const override { return MacAddress::local(1); }
  [[nodiscard]] std::string_view name() const override { return "quiet"; }
  [[nodiscard]] PortStats stats() const override { return {}; }
  [[nodiscard]] PortWakeup* wakeup() override { return &wakeup_; }

 private:
  PortWakeup& wakeup_;
  PortCapabilities capabilities_;
};

class SleepingHelper : public testing::Test, protected RealHosts {
 protected:
  void SetUp() override {
    start();
    make(a_, std::make_unique<QuietPort>(wakeup_), "10.0.0.1/24", {});
  }
  void TearDown() override { a_ = {}; }  // the port refers to wakeup_

  // Waits for the event of the completion without a call of the library.
  void expect_flushed(End& end, uint64_t id) {
    pollfd event{a_.channel->fd(), POLLIN, 0};
    ASSERT_EQ(poll(&event, 1, static_cast<int>(std::chrono::milliseconds(kPatience).count())), 1);
    ASSERT_TRUE(a_.channel->get_event());
    ibv_wc wc{};
    ASSERT_EQ(end.cq->poll(1, &wc), 1);
    EXPECT_EQ(wc.wr_id, id);
    EXPECT_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
  }

  PatientWakeup wakeup_;
};

class Answer final : public cm::AddressQuery {
 public:
  void on_resolved(Status found) override { result.set_value(found.has_value()); }
  std::promise<bool> result;
};

// A program that waits for connection events with poll() or epoll makes no call that hands the device to the helper.
TEST_F(SleepingHelper, wakes_for_an_address_resolution) {
  cm::Manager manager(a_.device->host());
  Answer answer;
  std::future<bool> result = answer.result.get_future();
  ASSERT_TRUE(wakeup_.helper_sleeps());
  manager.resolve(answer, IpAddress::parse("10.0.0.1").value(), 10s);
  ASSERT_EQ(result.wait_for(kPatience), std::future_status::ready);
  EXPECT_TRUE(result.get());
}

TEST_F(SleepingHelper, leaves_the_processor_to_a_thread_that_has_the_device) {
  ASSERT_TRUE(wakeup_.helper_sleeps());
  EXPECT_TRUE(wakeup_.helper_sleeps_with_frames());
}

TEST_F(SleepingHelper, wakes_to_flush_a_queue_pair_in_error_state) {
  End end = make_end(a_, kSlot);
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = 1;
  must(end.qp->modify(attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
  ASSERT_EQ(post_receive(end, 7, 0, 64), 0);
  end.cq->request_notify(false);
  ASSERT_TRUE(wakeup_.helper_sleeps());
  attr.qp_state = IBV_QPS_ERR;
  must(end.qp->modify(attr, IBV_QP_STATE));
  expect_flushed(end, 7);
  // A request that is posted in the error state.
  end.cq->request_notify(false);
  ASSERT_TRUE(wakeup_.helper_sleeps());
  ASSERT_EQ(post_receive(end, 8, 0, 64), 0);
  expect_flushed(end, 8);
}

}  // namespace
}  // namespace roci::test
