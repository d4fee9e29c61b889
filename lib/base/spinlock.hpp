// A lock for sections of a few nanoseconds that threads of an application share. A thread that waits for long sleeps, because on a
// small machine the holder may not be running.
#pragma once

#include <atomic>

#include "base/waiting.hpp"

namespace roci {

// Meets the standard's Lockable, so std::scoped_lock takes it.
class Spinlock {
 public:
  void lock() {
    while (!try_lock()) {
      for (Backoff backoff; taken_.load(std::memory_order_relaxed);) backoff.wait();
    }
  }
  bool try_lock() { return !taken_.exchange(true, std::memory_order_acquire); }
  void unlock() { taken_.store(false, std::memory_order_release); }

 private:
  std::atomic<bool> taken_{false};
};

}  // namespace roci
