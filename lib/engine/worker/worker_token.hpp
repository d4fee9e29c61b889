// The right to access a worker and everything that it owns: queue pairs, neighbors and timers. The poll
// loop takes the token for one round at a time, and the control path takes it between two rounds. Each object thus has
// one owner at any time, without locks on the data path.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/os/waiting.hpp"

namespace roci {

class WorkerToken {
 public:
  // Called by the control path; waits for the end of the current round. Satisfies BasicLockable.
  void lock() {
    wanted_.fetch_add(1, std::memory_order_relaxed);
    for (Backoff backoff; taken_.exchange(true, std::memory_order_acquire);) backoff.wait();
    wanted_.fetch_sub(1, std::memory_order_relaxed);
  }
  // Called by poll loops; fails while another thread polls or the control path waits. The control path sleeps while it
  // waits, so one of kCourtesy attempts takes the token if it is free.
  bool try_lock() {
    if (wanted_.load(std::memory_order_relaxed) > 0 &&
        refused_.fetch_add(1, std::memory_order_relaxed) % kCourtesy != kCourtesy - 1)
      return false;
    return !taken_.exchange(true, std::memory_order_acquire);
  }
  void unlock() { taken_.store(false, std::memory_order_release); }

 private:
  static constexpr uint32_t kCourtesy = 1024;

  std::atomic<bool> taken_{false};
  std::atomic<int> wanted_{0};
  std::atomic<uint32_t> refused_{0};
};

}  // namespace roci
