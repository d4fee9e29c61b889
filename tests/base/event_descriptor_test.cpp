#include "base/os/event_descriptor.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <future>
#include <mutex>
#include <thread>
#include <vector>

#include "base/os/waiting.hpp"
#include "support/process/pending_cancellation.hpp"

namespace roci {
namespace {

using std::chrono::milliseconds;

std::atomic<int> signals_handled{0};

// A thread in BlockedThreads::wait(), and a handler for signals to it.
class BlockedThread : public testing::Test {
 protected:
  void wait_with_handler(int flags) {
    signals_handled = 0;
    struct sigaction action {};
    action.sa_handler = [](int) { signals_handled.fetch_add(1); };
    action.sa_flags = flags;
    ASSERT_EQ(sigaction(SIGUSR1, &action, nullptr), 0);
    std::promise<int> result;
    returned_ = result.get_future();
    thread_ = std::thread([this, result = std::move(result)]() mutable {
      result.set_value(blocked_.wait([this] { return checked_ = true, false; }));
    });
    while (!checked_) std::this_thread::sleep_for(milliseconds{1});
  }
  void signal_it() { pthread_kill(thread_.native_handle(), SIGUSR1); }
  bool has_returned(milliseconds within) { return returned_.wait_for(within) == std::future_status::ready; }
  void TearDown() override {
    blocked_.wake();
    if (thread_.joinable()) thread_.join();
    signal(SIGUSR1, SIG_DFL);
  }

  BlockedThreads blocked_;
  std::atomic<bool> checked_{false};
  std::thread thread_;
  std::future<int> returned_;
};

TEST_F(BlockedThread, continues_to_wait_after_a_handler_with_sa_restart) {
  wait_with_handler(SA_RESTART);
  for (int i = 1; i <= 5; ++i) {
    signal_it();
    while (signals_handled < i) std::this_thread::sleep_for(milliseconds{1});
    EXPECT_FALSE(has_returned(milliseconds{5}));
  }
  blocked_.wake();
  EXPECT_EQ(returned_.get(), 0);
}

TEST_F(BlockedThread, returns_eintr_after_a_handler_without_sa_restart) {
  wait_with_handler(0);
  do signal_it();  // may arrive before it blocks
  while (!has_returned(milliseconds{5}));
  EXPECT_EQ(returned_.get(), EINTR);
}

TEST_F(BlockedThread, can_be_canceled) {
  wait_with_handler(0);
  pthread_cancel(thread_.native_handle());
  thread_.join();
}

// Each of two threads takes events that a third one raises; both must end although events come faster than wakes.
TEST(BlockedThreads, every_event_is_found_by_a_waiting_thread) {
  constexpr int kEvents = 20000;
  BlockedThreads blocked;
  std::mutex mutex;
  int events = 0, taken = 0;
  const auto try_take = [&] {
    const std::scoped_lock guard(mutex);
    if (events == 0) return false;
    --events;
    ++taken;
    return true;
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&] {
      for (int own = 0; own < kEvents / 2; ++own) {
        while (!try_take()) {
          blocked.wait([&] {
            const std::scoped_lock guard(mutex);
            return events > 0;
          });
        }
      }
    });
  }
  for (int i = 0; i < kEvents; ++i) {
    {
      const std::scoped_lock guard(mutex);
      ++events;
    }
    blocked.wake();
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(taken, kEvents);
}

TEST(Cancellation, eventfd_calls_and_short_sleeps_are_no_cancellation_points) {
  const int fd = eventfd(0, EFD_CLOEXEC);
  ASSERT_GE(fd, 0);
  EXPECT_TRUE(test::returns_with_pending_cancellation([fd] { add_to_eventfd(fd); }));
  pollfd readable{.fd = fd, .events = POLLIN, .revents = 0};
  EXPECT_EQ(poll(&readable, 1, 0), 1);
  EXPECT_TRUE(test::returns_with_pending_cancellation([fd] { read_eventfd(fd); }));
  EXPECT_EQ(poll(&readable, 1, 0), 0);
  close(fd);
  EXPECT_TRUE(test::returns_with_pending_cancellation([] {
    Backoff backoff;
    for (int i = 0; i < 110; ++i) backoff.wait();
  }));
  EXPECT_FALSE(test::returns_with_pending_cancellation([] { usleep(1); }));
}

}  // namespace
}  // namespace roci
