// Keeps the polling threads out of memif devices while DPDK's interrupt thread works on them.
//
// The memif driver (22.11) talks to its other side on the interrupt thread. When that side goes it takes the shared memory down
// there, without a lock against whoever is in a burst at that moment: a process that is killed could take its peers with it. So
// bursts run only while the interrupt thread is known to do nothing: it waits in a callback of ours, and leaves it now and then,
// after the last visitor is out, to do what has come up.
//
//   interrupt thread   waits in the callback: visitors may enter --> shut, last one out --> events --> waits again …
//   polling thread     enter() -- rx_burst, tx_burst -- leave(); a burst that may not enter finds nothing
//
// It is shut for some 20 us every few milliseconds.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <vector>

#include "base/types.hpp"

namespace roci {

class MemifGate {
 public:
  // A queue that is polled, by one thread at a time.
  class alignas(64) Visitor {
   public:
    // Without success the devices must not be touched.
    [[nodiscard]] bool enter();
    void leave() { inside_.store(false, std::memory_order_release); }

   private:
    friend class MemifGate;
    std::atomic<bool> inside_{false};
  };

  // One for the process. The EAL must be up when visitors come.
  static MemifGate& instance();

  // From now on, and until it is removed. What its device has to say may wait for `patience`. Any thread but the interrupt one.
  void add(Visitor& visitor, Nanos patience);
  void remove(Visitor& visitor);
  // Lets the interrupt thread out at once, for who waits for something that runs there.
  void hurry();

 private:
  struct Known {
    Visitor* visitor;
    Nanos patience;
  };

  MemifGate() = default;
  static void wait_inside(void* gate);  // the callback
  void arm();
  [[nodiscard]] bool anybody_inside() const;

  std::atomic<bool> open_{false};
  std::mutex mutex_;
  std::condition_variable hurry_;
  std::vector<Known> visitors_;
  bool armed_ = false;  // the callback is due or runs
  bool hurried_ = false;
};

}  // namespace roci
