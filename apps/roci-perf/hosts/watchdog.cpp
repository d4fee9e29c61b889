#include "roci-perf/hosts/watchdog.hpp"

#include <unistd.h>

#include <cstdio>

namespace roci::perf {

Watchdog::Watchdog(const std::atomic<uint64_t>& heartbeat, Nanos limit)
    : thread_([this, &heartbeat, limit] { watch(heartbeat, limit); }) {}

Watchdog::~Watchdog() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void Watchdog::watch(const std::atomic<uint64_t>& heartbeat, Nanos limit) {
  std::unique_lock lock(mutex_);
  uint64_t seen = heartbeat.load(std::memory_order_relaxed);
  while (!wake_.wait_for(lock, limit, [this] { return ended_; })) {
    const uint64_t count = heartbeat.load(std::memory_order_relaxed);
    if (count == seen) {
      std::fprintf(stderr, "roci-perf: no progress for %.0f s; terminated by the watchdog\n",
                   static_cast<double>(limit.count()) * 1e-9);
      _exit(1);
    }
    seen = count;
  }
}

}  // namespace roci::perf
