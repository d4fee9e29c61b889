// The right to touch a worker and everything it owns: its queue pairs, memory table, neighbours and timers. The poll
// loop takes it for one round at a time; the control path takes it between two rounds. So every object has one owner
// at any time, and nothing on the data path locks.
#pragma once

#include <atomic>

#include "base/waiting.hpp"

namespace roci {

class WorkerToken {
 public:
  // For the control path: waits for the end of the round under way. Meets the standard's BasicLockable.
  void lock() {
    wanted_.fetch_add(1, std::memory_order_relaxed);
    for (Backoff backoff; taken_.exchange(true, std::memory_order_acquire);) backoff.wait();
    wanted_.fetch_sub(1, std::memory_order_relaxed);
  }
  // For poll loops: steps back when somebody else is polling, or when the control path waits.
  bool try_lock() {
    if (wanted_.load(std::memory_order_relaxed) > 0) return false;
    return !taken_.exchange(true, std::memory_order_acquire);
  }
  void unlock() { taken_.store(false, std::memory_order_release); }

 private:
  std::atomic<bool> taken_{false};
  std::atomic<int> wanted_{0};
};

}  // namespace roci
