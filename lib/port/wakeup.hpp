// Interface for waiting for frames without polling. The thread that polls a port arms the wakeup, checks that no frame
// is pending, and sleeps. A sender makes a system call only while the wakeup is armed.
//
// The word, in memory shared with the sender, has a flag "armed" in bit 0 and a flag "acknowledgments too" in bit 1.
// The other bits count wake-ups:
//
//   receiver: arm() sets the flag and returns the word; then checks for frames; then waits while the word is unchanged
//   sender:   publishes a frame; full fence; if the flag is set: clears it, increments the count, wakes all waiters
//
// Either the receiver's check comes after the sender's publication, or the sender sees the flag. Because of the count,
// a wait returns at once if a wake-up came between arm() and the wait. wait() must get the value of arm(): the sender
// of an already received frame may clear the flag at any time after arm(). A receiver that waited with a value read
// later would then wait with the flag clear.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/types.hpp"

namespace roci {

// An acknowledgment alone need not wake a receiver, unless the receiver needs it to send more or sleeps until a request
// completes. The receiver reads the acknowledgment when its application polls, or with the next frame.
enum class WakeFor : uint8_t { kAllFrames, kNonAckFrames };

struct WakeupWord {
  static constexpr uint32_t kArmed = 1, kWithAcks = 2, kOne = 4;
  std::atomic<uint32_t> value{0};

  // Sets the flags and returns the new value of the word.
  uint32_t arm(WakeFor what) {
    if (what == WakeFor::kAllFrames)
      return value.fetch_or(kArmed | kWithAcks, std::memory_order_seq_cst) | kArmed | kWithAcks;
    value.fetch_and(~kWithAcks, std::memory_order_seq_cst);
    return value.fetch_or(kArmed, std::memory_order_seq_cst) | kArmed;
  }
  void disarm() { value.fetch_and(~(kArmed | kWithAcks), std::memory_order_seq_cst); }
  // Called after publication and a full fence. Returns true if the caller must wake the receiver.
  [[nodiscard]] bool claim(WakeFor published) {
    const uint32_t wanted = published == WakeFor::kAllFrames ? kWithAcks : kArmed;
    uint32_t now = value.load(std::memory_order_relaxed);
    while ((now & wanted) != 0) {
      if (value.compare_exchange_weak(now, (now & ~(kArmed | kWithAcks)) + kOne, std::memory_order_seq_cst))
        return true;
    }
    return false;
  }
};

// The kind of waiting thread of a process; each kind has a word. Senders wake the application before the helper.
enum class Waiter : uint8_t { kApplication, kHelper };
inline constexpr unsigned kWaiters = 2;

// Interface of a port for threads that wait for its frames. Any thread.
class PortWakeup {
 public:
  PortWakeup() = default;
  PortWakeup(const PortWakeup&) = delete;
  PortWakeup& operator=(const PortWakeup&) = delete;
  virtual ~PortWakeup() = default;

  // The word's value, for a wait() that only wake() ends. The caller must read it before it checks whether it has work.
  [[nodiscard]] virtual uint32_t value(Waiter waiter) const = 0;
  // From now on, senders wake the waiter. The caller must check for earlier
  // frames with has_frames(). Returns the value for wait().
  virtual uint32_t arm(Waiter waiter, WakeFor what) = 0;
  virtual void disarm(Waiter waiter) = 0;
  [[nodiscard]] virtual bool has_frames() = 0;
  // Sleeps while the word has this value, at most for `limit` (kNever: no limit).
  virtual void wait(Waiter waiter, uint32_t seen, Nanos limit) = 0;
  // Ends the waits.
  virtual void wake(Waiter waiter) = 0;
  // Between hold_wakes() and release_wakes(), the calling thread wakes no receivers of its frames; release_wakes()
  // wakes those that are due. A wake-up costs more than a frame, and the woken thread could be scheduled on the CPU
  // that the caller is about to leave.
  virtual void hold_wakes() = 0;
  virtual void release_wakes() = 0;
};

}  // namespace roci
