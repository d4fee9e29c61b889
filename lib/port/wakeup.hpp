// How a thread that drives a port waits for frames without polling: it arms the wakeup, checks that no frame waits, and sleeps. A
// sender makes a system call only while the wakeup is armed.
//
// The word (in memory that the sender shares) has a flag "armed" in bit 0, a flag "for acknowledgements too" in bit 1, and counts
// wakes in the other bits:
//
//   receiver: arm() sets the flag and returns the word; then looks for frames; then waits while the word has this value
//   sender:   publishes a frame; full fence; if the flag is set: clears it, adds one to the count, wakes all waiters
//
// Either the receiver's look comes after the sender's frame, or the sender sees the flag. The count makes a wait return at once
// when a wake came between arm() and the wait. The value must be the one of arm(): the sender of a frame that was received before
// may clear the flag at any time after it, and a receiver that waited with a value read later would wait with the flag clear.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/types.hpp"

namespace roci {

// An acknowledgement alone need not wake a receiver that neither waits for it to send more nor sleeps until a request completes:
// it reads the acknowledgement when its application polls, or with the next frame.
enum class WakeFor : uint8_t { kAnything, kMoreThanAcks };

struct WakeupWord {
  static constexpr uint32_t kArmed = 1, kAcksToo = 2, kOne = 4;
  std::atomic<uint32_t> value{0};

  // Returns the word as it is with the flags set.
  uint32_t arm(WakeFor what) {
    if (what == WakeFor::kAnything)
      return value.fetch_or(kArmed | kAcksToo, std::memory_order_seq_cst) | kArmed | kAcksToo;
    value.fetch_and(~kAcksToo, std::memory_order_seq_cst);
    return value.fetch_or(kArmed, std::memory_order_seq_cst) | kArmed;
  }
  void disarm() { value.fetch_and(~(kArmed | kAcksToo), std::memory_order_seq_cst); }
  // After something was published and a full fence. True when the caller is to wake the receiver.
  [[nodiscard]] bool claim(WakeFor published) {
    const uint32_t wanted = published == WakeFor::kAnything ? kAcksToo : kArmed;
    uint32_t now = value.load(std::memory_order_relaxed);
    while ((now & wanted) != 0) {
      if (value.compare_exchange_weak(now, (now & ~(kArmed | kAcksToo)) + kOne, std::memory_order_seq_cst))
        return true;
    }
    return false;
  }
};

// Which of a process's threads waits; each has a word. Senders wake the application before the helper.
enum class Waiter : uint8_t { kApplication, kHelper };
inline constexpr unsigned kWaiters = 2;

// What a port offers to threads that wait for its frames. Any thread.
class PortWakeup {
 public:
  PortWakeup() = default;
  PortWakeup(const PortWakeup&) = delete;
  PortWakeup& operator=(const PortWakeup&) = delete;
  virtual ~PortWakeup() = default;

  // The word's value, to be passed to wait() by a thread that waits for wake() alone; read before the caller looks whether it
  // has anything to do.
  [[nodiscard]] virtual uint32_t value(Waiter waiter) const = 0;
  // From now on a sender wakes. Frames that came before are the caller's to look for: has_frames(). Returns the value to be
  // passed to wait() then.
  virtual uint32_t arm(Waiter waiter, WakeFor what) = 0;
  virtual void disarm(Waiter waiter) = 0;
  [[nodiscard]] virtual bool has_frames() = 0;
  // Sleeps while the word has this value, at most for `limit` (kNever: without limit).
  virtual void wait(Waiter waiter, uint32_t seen, Nanos limit) = 0;
  // Ends the waits.
  virtual void wake(Waiter waiter) = 0;
  // Between the two the calling thread wakes no receivers of what it sends; at the end it wakes those that are due. A wake costs
  // more than a frame, and the woken thread may be given the processor that the caller is about to leave.
  virtual void hold_wakes() = 0;
  virtual void release_wakes() = 0;
};

}  // namespace roci
