#include "port/shm/shm_slot_owner.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <climits>

#include "base/rng.hpp"
#include "port/realtime_runner.hpp"

namespace roci {
namespace {

thread_local bool holds_wakes = false;

void futex_wait(const std::atomic<uint32_t>& word, uint32_t seen, Nanos limit) {
  timespec time{};
  if (limit != kNever) {
    const int64_t nanos = std::max<int64_t>(limit.count(), 0);
    time = {nanos / 1'000'000'000, nanos % 1'000'000'000};
  }
  syscall(SYS_futex, &word, FUTEX_WAIT, seen, limit == kNever ? nullptr : &time, nullptr, 0);
}

void futex_wake_all(const std::atomic<uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace

ShmSlotOwner::ShmSlotOwner(std::shared_ptr<ShmSegment> segment, uint32_t slot, uint64_t others,
                           std::function<bool()> has_unread)
    : segment_(std::move(segment)),
      slot_(slot),
      others_(others & ~slot_bit(slot)),
      has_unread_(std::move(has_unread)),
      own_(segment_->slot(slot)) {}

void ShmSlotOwner::join() {
  own_.asleep.store(0);
  own_.woken.store(0);
  own_.ran.store(0);
  own_.polled.store(0);
  incarnation_ = os_random() | 1;
  publish();
}

void ShmSlotOwner::publish() {
  own_.pid.store(static_cast<uint32_t>(getpid()));
  own_.incarnation.store(incarnation_, std::memory_order_release);
}

ShmSlotOwner::~ShmSlotOwner() {
  if (incarnation_ != 0) release(slot_, incarnation_);
}

// Adds to the engine time: the time since the last poll in which this engine ran or had no work.
void ShmSlotOwner::note_poll(Nanos now) {
  const Nanos gap = now - last_poll_;
  // Loaded before `slept_`, with acquire: pairs with the release in wait(). A sleep that `asleep` no longer counts is
  // then in `slept_`.
  const bool asleep = own_.asleep.load(std::memory_order_acquire) != 0;
  Nanos slept{0};
  if (slept_.load(std::memory_order_relaxed) != 0)
    slept = Nanos{slept_.exchange(0, std::memory_order_relaxed)};
  if (last_poll_ != Nanos{0} && gap > Nanos{0})
    ran_ += (asleep ? gap : std::min(gap, slept + kMaxPollGap)).count();
  last_poll_ = now;
  own_.ran.store(ran_, std::memory_order_relaxed);
  own_.polled.store(now.count(), std::memory_order_relaxed);
  // Overwritten by a faulty process: the others drop frames to a slot without an owner. A value other than 0 may be that
  // of the next owner.
  if (own_.incarnation.load(std::memory_order_relaxed) == 0 && incarnation_ != 0) [[unlikely]]
    publish();
}

void ShmSlotOwner::notify(uint32_t slot, bool urgent, Nanos now) {
  ShmSlot& to = segment_->slot(slot);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if ((to.pending.load(std::memory_order_relaxed) & slot_bit(slot_)) == 0)
    to.pending.fetch_or(slot_bit(slot_), std::memory_order_seq_cst);
  if (holds_wakes) {
    held_wakes_.fetch_or(slot_bit(slot), std::memory_order_relaxed);
    if (urgent) held_urgent_.fetch_or(slot_bit(slot), std::memory_order_relaxed);
  } else {
    wake_owner(slot, urgent ? WakeFor::kNonAckFrames : WakeFor::kAllFrames, now);
  }
}

void ShmSlotOwner::wake_owner(uint32_t slot, WakeFor published, Nanos now) {
  ShmSlot& to = segment_->slot(slot);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  for (WakeupWord& word : to.wakeups) {
    if (!word.claim(published)) continue;
    to.woken.store(now.count(), std::memory_order_relaxed);
    wakes_.fetch_add(1, std::memory_order_relaxed);
    futex_wake_all(word.value);
    return;
  }
}

void ShmSlotOwner::wake_all() {
  wakeup_.wake(Waiter::kApplication);
  wakeup_.wake(Waiter::kHelper);
}

uint32_t ShmSlotOwner::Wakeup::value(Waiter waiter) const {
  return word(waiter).value.load(std::memory_order_seq_cst);
}
uint32_t ShmSlotOwner::Wakeup::arm(Waiter waiter, WakeFor what) { return word(waiter).arm(what); }
void ShmSlotOwner::Wakeup::disarm(Waiter waiter) { word(waiter).disarm(); }

// Checks the rings as well: a faulty process may have cleared pending bits of other slots. The load of `tail` is
// sequentially consistent: pairs with the fence of wake_owner(), between the store of `tail` and the load of the word.
// Either this load returns the new position, or the sender reads the flag that arm() has set. The load of the pending
// bits is relaxed and does not ensure this.
bool ShmSlotOwner::Wakeup::has_frames() {
  if (owner_.has_pending() || owner_.has_unread_()) return true;
  for (uint64_t left = owner_.others_; left != 0; left &= left - 1) {
    const auto slot = static_cast<uint32_t>(std::countr_zero(left));
    const ShmRingControl& ring = owner_.segment_->control(slot, owner_.slot_);
    if (ring.tail.load(std::memory_order_seq_cst) == ring.head.load(std::memory_order_relaxed)) continue;
    owner_.set_pending(slot);
    return true;
  }
  return false;
}

void ShmSlotOwner::Wakeup::wait(Waiter waiter, uint32_t seen, Nanos limit) {
  ShmSlot& own = owner_.own_;
  const Nanos from = monotonic_now();
  const bool armed = (seen & WakeupWord::kArmed) != 0;
  if (armed) own.asleep.fetch_add(1, std::memory_order_relaxed);
  futex_wait(word(waiter).value, seen, limit);
  if (!armed) return;
  // Only the time before the wake-up counts as sleep: afterwards
  // the thread was runnable, but may not have been scheduled.
  const Nanos woken{own.woken.load(std::memory_order_relaxed)}, now = monotonic_now();
  owner_.slept_.fetch_add(((woken > from && woken < now ? woken : now) - from).count(),
                          std::memory_order_relaxed);
  // After `slept_`: pairs with the acquire in note_poll().
  own.asleep.fetch_sub(1, std::memory_order_release);
}

void ShmSlotOwner::Wakeup::hold_wakes() { holds_wakes = true; }

void ShmSlotOwner::Wakeup::release_wakes() {
  holds_wakes = false;
  uint64_t held = owner_.held_wakes_.load(std::memory_order_relaxed);
  if (held == 0) return;
  held = owner_.held_wakes_.exchange(0, std::memory_order_relaxed);
  const uint64_t urgent = owner_.held_urgent_.exchange(0, std::memory_order_relaxed);
  for (const Nanos now = monotonic_now(); held != 0; held &= held - 1) {
    const auto slot = static_cast<uint32_t>(std::countr_zero(held));
    owner_.wake_owner(slot, (urgent & slot_bit(slot)) != 0 ? WakeFor::kNonAckFrames : WakeFor::kAllFrames,
                      now);
  }
}

void ShmSlotOwner::Wakeup::wake(Waiter waiter) {
  std::atomic<uint32_t>& value = word(waiter).value;
  value.fetch_add(WakeupWord::kOne, std::memory_order_seq_cst);
  futex_wake_all(value);
}

}  // namespace roci
