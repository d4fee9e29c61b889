// The owner's side of a slot in shared memory (shm_segment.hpp): slots that have published frames for it, waiting for frames, and
// waking the receivers of its own frames.
#pragma once

#include <atomic>
#include <functional>
#include <memory>

#include "port/shm_segment.hpp"
#include "port/wakeup.hpp"

namespace roci {

constexpr uint64_t slot_bit(uint32_t slot) { return uint64_t{1} << slot; }
static_assert(kShmSlots <= 64);

// One thread at a time polls; wakeup() is for any thread.
class ShmSlotOwner {
 public:
  // A poll within this time of the last one counts as running all the time in between: more than the longest sleep of a runner.
  static constexpr Nanos kTurn{5'000'000};

  // `others`: a bit for each slot that it exchanges frames with. `has_unread`: whether frames are left to be read although their
  // slots are no longer pending; called by any thread.
  ShmSlotOwner(std::shared_ptr<ShmSegment> segment, uint32_t slot, uint64_t others,
               std::function<bool()> has_unread);
  // Leaves the slot.
  ~ShmSlotOwner();
  ShmSlotOwner(const ShmSlotOwner&) = delete;
  ShmSlotOwner& operator=(const ShmSlotOwner&) = delete;
  // Publishes the slot, so that other slots send to it. The caller holds the slot's lock and has opened the rings.
  void join();

  [[nodiscard]] ShmSegment& segment() const { return *segment_; }
  [[nodiscard]] const std::shared_ptr<ShmSegment>& shared_segment() const { return segment_; }
  // Whether the slot has an owner, according to the slot itself: a process that was killed still counts.
  [[nodiscard]] bool is_taken(uint32_t slot) const { return incarnation_of(slot) != 0; }
  [[nodiscard]] uint64_t incarnation_of(uint32_t slot) const {
    return segment_->slot(slot).incarnation.load(std::memory_order_acquire);
  }

  // To be called at each poll.
  void note_poll(Nanos now);
  [[nodiscard]] Nanos last_poll() const { return last_poll_; }
  [[nodiscard]] bool has_pending() const { return own_.pending.load(std::memory_order_relaxed) != 0; }
  // Clears the slot for its next owner, unless it has one already. `incarnation`: of the owner that has left.
  void release(uint32_t slot, uint64_t incarnation) const {
    segment_->slot(slot).incarnation.compare_exchange_strong(incarnation, 0);
  }
  // Takes the bits of the slots that have published frames since the last call.
  uint64_t take_pending() {
    if (!has_pending()) return 0;
    return own_.pending.exchange(0, std::memory_order_seq_cst) & others_;
  }
  // The next poll reads the slot's ring. Any thread.
  void set_pending(uint32_t slot) { own_.pending.fetch_or(slot_bit(slot), std::memory_order_seq_cst); }
  // Notifies the slot's owner that frames for it were published. `urgent`: not only acknowledgments.
  void notify(uint32_t slot, bool urgent, Nanos now);
  // System calls that woke a receiver.
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
  std::atomic<int64_t> slept_{0};        // ns that threads have waited since the last poll
  std::atomic<uint64_t> held_wakes_{0};  // slots whose owners are to be woken
  std::atomic<uint64_t> held_urgent_{0};
  std::atomic<uint64_t> wakes_{0};
};

}  // namespace roci
