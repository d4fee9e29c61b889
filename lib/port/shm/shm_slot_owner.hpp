// Operations of a slot's owner in shared memory (shm_segment.hpp): polls which slots have published frames for it,
// waits for frames, and wakes the receivers of its own frames.
#pragma once

#include <atomic>
#include <functional>
#include <memory>

#include "port/shm/shm_segment.hpp"
#include "port/wakeup.hpp"

namespace roci {

constexpr uint64_t slot_bit(uint32_t slot) { return uint64_t{1} << slot; }
static_assert(kShmSlots <= 64);

// One thread at a time polls; wakeup() may be used by any thread.
class ShmSlotOwner {
 public:
  // If two polls are at most this far apart, the engine counts as running
  // in between. Longer than the longest sleep of a runner.
  static constexpr Nanos kMaxPollGap{5'000'000};

  // `others`: bitmap of the slots with which the owner exchanges frames. `has_unread`: whether frames of slots that are
  // no longer pending are unread; called by any thread.
  ShmSlotOwner(std::shared_ptr<ShmSegment> segment, uint32_t slot, uint64_t others,
               std::function<bool()> has_unread);
  // Leaves the slot.
  ~ShmSlotOwner();
  ShmSlotOwner(const ShmSlotOwner&) = delete;
  ShmSlotOwner& operator=(const ShmSlotOwner&) = delete;
  // Publishes the slot, so that other slots send to it. The caller must hold the slot's lock and have opened the rings.
  void join();

  [[nodiscard]] ShmSegment& segment() const { return *segment_; }
  [[nodiscard]] const std::shared_ptr<ShmSegment>& shared_segment() const { return segment_; }
  // Whether the slot has an owner according to shared memory; a killed process still counts until its exit is noted.
  [[nodiscard]] bool is_taken(uint32_t slot) const { return incarnation_of(slot) != 0; }
  [[nodiscard]] uint64_t incarnation_of(uint32_t slot) const {
    return segment_->slot(slot).incarnation.load(std::memory_order_acquire);
  }

  // Must be called at each poll.
  void note_poll(Nanos now);
  [[nodiscard]] Nanos last_poll() const { return last_poll_; }
  [[nodiscard]] bool has_pending() const { return own_.pending.load(std::memory_order_relaxed) != 0; }
  // Frees the slot for its next owner, unless it already has one. `incarnation`: of the owner that has exited.
  void release(uint32_t slot, uint64_t incarnation) const {
    segment_->slot(slot).incarnation.compare_exchange_strong(incarnation, 0);
  }
  // Returns and clears the bits of the slots that have published frames since the last call.
  uint64_t take_pending() {
    if (!has_pending()) return 0;
    return own_.pending.exchange(0, std::memory_order_seq_cst) & others_;
  }
  // Makes the next poll read the slot's ring. Any thread.
  void set_pending(uint32_t slot) { own_.pending.fetch_or(slot_bit(slot), std::memory_order_seq_cst); }
  // Notifies the slot's owner of published frames. `urgent`: the frames are not only acknowledgments.
  void notify(uint32_t slot, bool urgent, Nanos now);
  // Number of system calls that woke a receiver.
  [[nodiscard]] uint64_t wakes() const { return wakes_.load(std::memory_order_relaxed); }

  [[nodiscard]] PortWakeup& wakeup() const { return wakeup_; }
  // Ends all waits of this process.
  void wake_all();

 private:
  class Wakeup final : public PortWakeup {
   public:
    explicit Wakeup(ShmSlotOwner& owner) : owner_(owner) {}
    [[nodiscard]] uint32_t value(Waiter waiter) const override;
    uint32_t arm(Waiter waiter, WakeFor what) override;
    void disarm(Waiter waiter) override;
    [[nodiscard]] bool has_frames() override;
    void wait(Waiter waiter, uint32_t seen, Nanos limit) override;
    void wake(Waiter waiter) override;
    void hold_wakes() override;
    void release_wakes() override;

   private:
    [[nodiscard]] WakeupWord& word(Waiter waiter) const {
      return owner_.own_.wakeups[static_cast<unsigned>(waiter)];
    }
    ShmSlotOwner& owner_;
  };
  // Stores process id and incarnation of the owner in the slot.
  void publish();
  void wake_owner(uint32_t slot, WakeFor published, Nanos now);

  const std::shared_ptr<ShmSegment> segment_;
  const uint32_t slot_;
  const uint64_t others_;
  const std::function<bool()> has_unread_;
  ShmSlot& own_;
  uint64_t incarnation_ = 0;  // 0: not joined
  mutable Wakeup wakeup_{*this};
  Nanos last_poll_{0};
  int64_t ran_ = 0;
  std::atomic<int64_t> slept_{0};        // ns that threads have slept since the last poll
  std::atomic<uint64_t> held_wakes_{0};  // slots whose owners must be woken
  std::atomic<uint64_t> held_urgent_{0};
  std::atomic<uint64_t> wakes_{0};
};

}  // namespace roci
