// Helper thread that drives a host while the application does not poll it, on a port with PortWakeup (port/wakeup.hpp).
// It sleeps until a frame arrives or a timer is due.
//
//   helper drives --- `patience` empty polls of the application in a row -------------> application drives
//        ^                                                                                   |
//        '--- a poll finds work; the application blocks, requests an event, or stops polling ------'
//
// While the application drives, senders make no system calls, and the helper checks periodically whether the
// application still polls. After a poll that finds work, the application may stop polling without a call, to spin on
// memory or to compute. An application that has resumed polling kProven times in a row keeps the device after such a
// poll, until a check finds that it has stopped.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>

#include "base/result.hpp"
#include "base/types.hpp"
#include "port/wakeup.hpp"

namespace roci {

class Host;

// Owned by the host. Its thread runs until destruction.
class WaitingHelper {
 public:
  // EAGAIN: the thread cannot be started.
  static Result<std::unique_ptr<WaitingHelper>> start(Host& host, PortWakeup& wakeup);
  ~WaitingHelper();
  WaitingHelper(const WaitingHelper&) = delete;
  WaitingHelper& operator=(const WaitingHelper&) = delete;

  // The public functions may be called by any thread of the application.
  //
  // Called after a round of the application. `worked`: the round found work.
  void after_round(bool worked);
  // The application has found completions without a round.
  void after_find() {
    if (application_polls_.load(std::memory_order_relaxed) &&
        proven_.load(std::memory_order_relaxed) < kProven)
      give_back();
    idle_rounds_.store(0, std::memory_order_relaxed);
  }
  // The application is about to wait for an event.
  void hand_over();
  // Wakes the helper if the host has a deadline before the end of the helper's sleep.
  void wake_for_deadline();

 private:
  WaitingHelper(Host& host, PortWakeup& wakeup) : host_(host), wakeup_(wakeup) {}
  void run();
  void watch_application();
  bool drive_while_busy();
  void sleep();
  void sleep_if_blocked();
  void start_polling();
  void give_back();
  [[nodiscard]] WakeFor wanted() const;
  void sleep_if_contended();

  static constexpr uint32_t kMinIdleRounds = 4, kMaxIdleRounds = 4096;  // rounds
  static constexpr uint32_t kProven = 16;                               // times

  Host& host_;
  PortWakeup& wakeup_;
  std::atomic<bool> stop_{false};
  std::atomic<bool> application_polls_{false};  // the application drives
  std::atomic<pid_t> application_{0};           // the thread that polls
  // The helper checks periodically whether the application polls.
  std::atomic<bool> watching_{false};
  std::atomic<bool> application_blocks_{false};  // for example until a request completes
  std::atomic<uint32_t> idle_rounds_{0};
  std::atomic<uint32_t> idle_limit_{kMinIdleRounds};
  std::atomic<uint32_t> proven_{0};  // number of times in a row that the application resumed polling
  std::atomic<WakeFor> armed_for_{WakeFor::kAllFrames};
  Nanos blocked_since_{0};  // start of the helper's attempts to get the device for frames; 0: there are none
  std::atomic<int64_t> wakes_at_{0};  // end of the helper's sleep; 0: it does not sleep
  std::thread thread_;
};

}  // namespace roci
