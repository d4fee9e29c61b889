// The last resort against hanging: a thread that ends the process when the thread it watches has stopped turning.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "base/types.hpp"

namespace roci::perf {

class Watchdog {
 public:
  // `heartbeat` must count up at least once in `limit`, and outlive the watchdog. When it does not, a sentence goes
  // to standard error and the process exits with status 1 at once, without taking anything down.
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
