#include "port/dpdk/memif_gate.hpp"

#include <gtest/gtest.h>
#include <rte_alarm.h>

#include <array>
#include <thread>

#include "port/dpdk/eal.hpp"

namespace roci {
namespace {

// Stands for a handler of the driver: runs on the interrupt thread.
struct Event {
  std::array<std::atomic<bool>, 2>* inside;
  std::atomic<int> met{0};  // number of times a thread was inside
  std::atomic<int> runs{0};

  static void run(void* passed) {
    Event& event = *static_cast<Event*>(passed);
    for (int look = 0; look < 100; ++look) {
      for (const auto& one : *event.inside) event.met += one.load() ? 1 : 0;
    }
    ++event.runs;
  }
};

TEST(MemifGate, excludes_queue_users_while_the_interrupt_thread_runs_a_handler) {
  ASSERT_TRUE(start_eal());
  std::array<MemifGate::QueueUser, 2> visitors;
  std::array<std::atomic<bool>, 2> inside{};
  for (auto& user : visitors) MemifGate::instance().add(user, 1ms);
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> visits{0};
  std::vector<std::thread> threads;
  for (size_t i = 0; i < visitors.size(); ++i) {
    threads.emplace_back([&, i] {
      while (!stop) {
        if (!visitors[i].enter()) {
          std::this_thread::yield();
          continue;
        }
        inside[i] = true;
        for (int work = 0; work < 50; ++work) inside[i] = true;
        inside[i] = false;
        visitors[i].leave();
        ++visits;
      }
    });
  }
  Event event{&inside};
  for (int i = 0; i < 100; ++i) {
    const int before = event.runs;
    ASSERT_EQ(rte_eal_alarm_set(1, Event::run, &event), 0);
    while (event.runs == before) std::this_thread::sleep_for(100us);
  }
  stop = true;
  for (auto& thread : threads) thread.join();
  for (auto& user : visitors) MemifGate::instance().remove(user);
  EXPECT_EQ(event.met, 0);
  EXPECT_GT(visits, 100U) << "the gate is open most of the time";
}

TEST(MemifGate, reopens_for_new_users_after_all_users_were_removed) {
  ASSERT_TRUE(start_eal());
  for (int round = 0; round < 3; ++round) {
    MemifGate::QueueUser user;
    MemifGate::instance().add(user, 1ms);
    bool entered = false;
    for (int i = 0; i < 20'000 && !entered; ++i) {
      entered = user.enter();
      if (!entered) std::this_thread::sleep_for(100us);
    }
    ASSERT_TRUE(entered);
    user.leave();
    MemifGate::instance().remove(user);
    std::this_thread::sleep_for(5ms);
  }
}

}  // namespace
}  // namespace roci
