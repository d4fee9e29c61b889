// How a thread that drives a port waits for frames without polling: it arms the wakeup, checks that no frame waits, and sleeps. A
// sender makes a system call only while the wakeup is armed.
//
// The word (in memory that the sender shares) has a flag "armed" in bit 0 and counts wakes in the other bits:
//
//   receiver: arm() sets the flag; then looks for frames; then waits while the word has the value it saw last
//   sender:   publishes a frame; full fence; if the flag is set: clears it, adds one to the count, wakes all waiters
//
// Either the receiver's look comes after the sender's frame, or the sender sees the flag. The count makes a wait return at once
// when a wake came between the look and the wait.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/types.hpp"

namespace roci {

struct WakeupWord {
  static constexpr uint32_t kArmed = 1, kOne = 2;
  std::atomic<uint32_t> value{0};

  void arm() { value.fetch_or(kArmed, std::memory_order_seq_cst); }
  void disarm() { value.fetch_and(~kArmed, std::memory_order_seq_cst); }
  // After something was published. True when the receiver is to be woken, which wake_waiters() does.
  [[nodiscard]] bool claim() {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    uint32_t now = value.load(std::memory_order_relaxed);
    while ((now & kArmed) != 0) {
      if (value.compare_exchange_weak(now, (now & ~kArmed) + kOne, std::memory_order_seq_cst)) return true;
    }
    return false;
  }
};

// What a port offers to those who wait for its frames. Any thread.
class PortWakeup {
 public:
  PortWakeup() = default;
  PortWakeup(const PortWakeup&) = delete;
  PortWakeup& operator=(const PortWakeup&) = delete;
  virtual ~PortWakeup() = default;

  // The word's value, to be passed to wait(); read before the caller looks whether it has anything to do.
  [[nodiscard]] virtual uint32_t value() const = 0;
  // From now on a sender wakes. Frames that came before are the caller's to look for: has_frames().
  virtual void arm() = 0;
  virtual void disarm() = 0;
  [[nodiscard]] virtual bool has_frames() = 0;
  // Sleeps while the word has this value, at most for `limit` (kNever: without limit).
  virtual void wait(uint32_t seen, Nanos limit) = 0;
  // Ends all waits of this process's threads.
  virtual void wake() = 0;
};

}  // namespace roci
