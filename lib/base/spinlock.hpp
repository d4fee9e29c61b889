// A lock for sections of a few nanoseconds that threads of an application share. It yields when it has to wait,
// because on a small machine the holder may not be running.
#pragma once

#include <sched.h>

#include <atomic>

namespace roci {

// Meets the standard's Lockable, so std::scoped_lock takes it.
class Spinlock {
 public:
  void lock() {
    while (!try_lock()) {
      for (int spins = 0; taken_.load(std::memory_order_relaxed); ++spins) {
        if (spins > 100) sched_yield();
      }
    }
  }
  bool try_lock() { return !taken_.exchange(true, std::memory_order_acquire); }
  void unlock() { taken_.store(false, std::memory_order_release); }

 private:
  std::atomic<bool> taken_{false};
};

}  // namespace roci
