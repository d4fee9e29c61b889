// Watchdog: a thread that ends the process if the watched thread has stopped polling.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "base/types.hpp"

namespace roci::perf {

class Watchdog {
 public:
  static constexpr Nanos kMargin = 20s;  // of the limit, in addition to that of a wait

  // `heartbeat` must increase at least once per `limit` and outlive the watchdog. Otherwise the process prints an error
  // on standard error and exits at once with status 1, without running destructors.
  Watchdog(const std::atomic<uint64_t>& heartbeat, Nanos limit);
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;
  ~Watchdog();

 private:
  void watch(const std::atomic<uint64_t>& heartbeat, Nanos limit);
  std::mutex mutex_;
  std::condition_variable wake_;
  bool ended_ = false;
  std::thread thread_;
};

}  // namespace roci::perf
