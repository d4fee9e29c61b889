// Gate that excludes polling threads from memif devices while DPDK's interrupt thread works on the devices.
//
// The memif driver (22.11) communicates with its peer on the interrupt thread. When the peer disconnects, that thread
// unmaps the shared memory, without a lock against a thread that is in a burst: the exit of a process could crash its
// peers. Therefore bursts run only while the interrupt thread waits in a callback of the gate. The callback returns
// periodically, after the last visitor has left, so that the thread can process pending events.
//
//   interrupt thread   waits in the callback: gate open --> closed, last visitor leaves --> events --> waits again …
//   polling thread     enter() -- rx_burst, tx_burst -- leave(); if enter() fails, the burst transfers no frames
//
// The gate is closed for about 20 us every few milliseconds.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <vector>

#include "base/types.hpp"

namespace roci {

class MemifGate {
 public:
  // A polled queue; one thread at a time.
  class alignas(64) QueueUser {
   public:
    // If it returns false, the caller must not access the device.
    [[nodiscard]] bool enter();
    void leave() { active_.store(false, std::memory_order_release); }

   private:
    friend class MemifGate;
    std::atomic<bool> active_{false};
  };

  // One per process. The EAL must be started before add().
  static MemifGate& instance();

  // Registers a visitor until remove(). Events of its device may
  // wait for `max_delay`. Any thread except the interrupt thread.
  void add(QueueUser& user, Nanos max_delay);
  void remove(QueueUser& user);
  // Makes the interrupt thread leave the callback at once, for a caller that waits for work on that thread.
  void end_wait();

 private:
  struct Known {
    QueueUser* user;
    Nanos max_delay;
  };

  MemifGate() = default;
  static void interrupt_callback(void* gate);  // the callback
  void arm();
  [[nodiscard]] bool any_active() const;

  std::atomic<bool> open_{false};
  std::mutex mutex_;
  std::condition_variable wait_ended_event_;
  std::vector<Known> users_;
  bool armed_ = false;  // the callback is scheduled or runs
  bool wait_ended_ = false;
};

}  // namespace roci
