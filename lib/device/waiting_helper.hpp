// The thread that drives a host for an application that does not poll it, on a port that can be waited for (port/wakeup.hpp). It
// sleeps until a frame arrives or a timer is due.
//
//   helper has it --- application polls in vain, `patience` times in a row ---> application has it
//        ^                                                                           |
//        '--- application blocks or asks for an event, or has not polled for kGone --'
//
// While the application has it senders make no system calls, and the helper only looks now and then whether the application still
// polls. An application that stops polling without a call (it spins on its memory) is found out by that look, and trusted less the
// next time.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>

#include "base/types.hpp"
#include "port/wakeup.hpp"

namespace roci {

class Host;

class WaitingHelper {
 public:
  WaitingHelper(Host& host, PortWakeup& wakeup);
  ~WaitingHelper();
  WaitingHelper(const WaitingHelper&) = delete;
  WaitingHelper& operator=(const WaitingHelper&) = delete;

  // Any thread of the application.
  // A round of the application's is over. `worked`: it did something.
  void after_round(bool worked);
  // The application is about to wait for an event.
  void hand_over();

 private:
  void run();
  void watch_application();
  void drive_while_busy();
  void sleep();
  void take_over();
  void rest_if_crowded();

  static constexpr uint32_t kLeastPatience = 16, kMostPatience = 4096;  // rounds

  Host& host_;
  PortWakeup& wakeup_;
  std::atomic<bool> stop_{false};
  std::atomic<bool> application_has_it_{false};
  std::atomic<uint32_t> idle_rounds_{0};
  std::atomic<uint32_t> patience_{kLeastPatience};
  std::atomic<int64_t> wakes_at_{0};  // when the helper's sleep ends by itself; 0: it does not sleep
  std::thread thread_;
};

}  // namespace roci
