// Spinlock for critical sections of a few nanoseconds between threads of an application. After a while a waiting thread
// sleeps, because on a machine with few cores the holder may not be running.
#pragma once

#include <atomic>

#include "base/os/waiting.hpp"

namespace roci {

// Satisfies the standard's Lockable, for std::scoped_lock.
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
