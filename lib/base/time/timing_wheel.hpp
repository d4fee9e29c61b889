// Hierarchical timing wheel: any number of timers; scheduling, moving and canceling are O(1) and do not allocate,
// because the timers are members of the waiting objects.
//
// The wheel is a radix tree of time. Level k has 64 slots of 64^k ns. A timer is on the level of the highest base-64
// digit in which its deadline differs from the wheel's time. It moves down when that digit is reached, at most kLevels
// times, and only if it is not canceled first, as most timers are. A bit mask per level marks the occupied slots, so
// advancing by seconds costs no more than advancing by a nanosecond.
//
//   level 10                      level 1                     level 0
//   [ | | |x| ]   . . .    [ |x| | |x| | | ... ]     [ | | |x|x| | ... ]     one slot is 1 ns: fires exactly
//    36 years/slot            64 ns per slot           1 ns per slot
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/types.hpp"

namespace roci {

class TimingWheel;

namespace internal {
struct TimerLink {
  TimerLink* next;
  TimerLink* previous;
};
}  // namespace internal

// Timer with one deadline. Derive from it or use it as a member, so that the callback can find the object. It must be
// canceled before it is destroyed, or outlive its wheel.
class Timer : private internal::TimerLink {
 public:
  Timer() : TimerLink{nullptr, nullptr} {}
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;
  ~Timer();

  [[nodiscard]] bool is_scheduled() const { return next != nullptr; }
  // Deadline for which it was last scheduled.
  [[nodiscard]] Nanos deadline() const { return deadline_; }

 private:
  friend class TimingWheel;
  Nanos deadline_{0};
  uint16_t slot_ = 0;  // index into TimingWheel::slots_, or kNoSlot
};
static_assert(sizeof(Timer) == 32);

// Wheel of timers. Owned by one thread.
class TimingWheel {
 public:
  // `start` must not be after the time of the first advance().
  explicit TimingWheel(Nanos start = Nanos{0});
  TimingWheel(const TimingWheel&) = delete;
  TimingWheel& operator=(const TimingWheel&) = delete;
  ~TimingWheel();

  // Schedules the timer, or moves it if it is scheduled already. A deadline at or before the wheel's time fires in the
  // next advance(), not in the current one, so that a callback that always schedules an expired deadline cannot loop
  // forever. kNever is the same as cancel().
  void schedule(Timer& timer, Nanos deadline);
  // No effect on a timer that is not scheduled.
  void cancel(Timer& timer);

  // Calls fire(Timer&) for every timer with deadline <= now: first those that were expired when scheduled, in the order
  // of scheduling; then the others in the order of their deadlines, equal ones in the order of scheduling. A timer
  // never fires early, not even by 1 ns. It is no longer scheduled when fire() is called; fire() may schedule and
  // cancel any timer. Returns the number of timers fired. `now` before the wheel's time counts as the wheel's time.
  template <class Fire>
  size_t advance(Nanos now, Fire&& fire);

  // Lower bound of the time of the next advance() that fires a timer; kNever without timers. Exact if the first
  // occupied slot holds few timers, else the start of that slot. An advance() to this time fires a timer or raises the
  // bound, so a runner that advances to it makes progress.
  [[nodiscard]] Nanos next_deadline() const {
    if (bound_ == kUnknown) bound_ = find_next_deadline();
    return bound_;
  }

  [[nodiscard]] size_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }
  // Time of the last advance().
  [[nodiscard]] Nanos now() const { return Nanos{static_cast<int64_t>(time_)}; }

 private:
  using Link = internal::TimerLink;
  static constexpr unsigned kDigitBits = 6;
  static constexpr unsigned kSlots = 1U << kDigitBits;
  static constexpr unsigned kLevels = 11;                // 66 bits hold every non-negative Nanos
  static constexpr uint16_t kNoSlot = kLevels * kSlots;  // of timers in late_ and firing_
  static constexpr unsigned kExactScan = 8;              // timers that next_deadline() examines

  static uint64_t ticks(Nanos t) { return t.count() <= 0 ? 0 : static_cast<uint64_t>(t.count()); }
  static Timer& timer_of(Link& link) { return static_cast<Timer&>(link); }
  [[nodiscard]] static bool is_empty(const Link& list) { return list.next == &list; }
  static void clear(Link& list) { list.next = list.previous = &list; }

  [[nodiscard]] unsigned lowest_level() const { return static_cast<unsigned>(std::countr_zero(levels_)); }
  [[nodiscard]] unsigned lowest_digit(unsigned level) const {
    return static_cast<unsigned>(std::countr_zero(occupied_[level]));
  }
  [[nodiscard]] uint64_t slot_start(unsigned level, unsigned digit) const;
  void append(Timer& timer, Link& list, uint16_t slot);
  void place(Timer& timer);
  void unlink(Timer& timer);
  // Moves the timers of the first occupied slot: those due at its start to the firing list, the others to lower levels.
  void open_slot(unsigned level, unsigned digit);
  template <class Fire>
  size_t fire_all(Fire& fire);

  // Result of next_deadline(), or kUnknown after a change.
  static constexpr Nanos kUnknown{-1};
  [[nodiscard]] Nanos find_next_deadline() const;

  mutable Nanos bound_ = kUnknown;
  uint64_t time_ = 0;    // all timers in slots_ have a later deadline
  uint32_t levels_ = 0;  // bit k: level k has an occupied slot
  size_t size_ = 0;
  std::array<uint64_t, kLevels> occupied_{};  // bit d: slot d of that level is not empty
  // Circular lists with these links as their heads.
  Link late_;    // deadline was at or before the wheel's time
  Link firing_;  // fire next
  // The head of a slot is initialized when the slot becomes occupied. Memory of slots that were never used, which is
  // most of the wheel's, is not accessed.
  std::array<Link, kLevels * kSlots> slots_;
};

template <class Fire>
size_t TimingWheel::fire_all(Fire& fire) {
  size_t fired = 0;
  while (!is_empty(firing_)) {
    Timer& timer = timer_of(*firing_.next);
    unlink(timer);
    ++fired;
    fire(timer);
  }
  return fired;
}

template <class Fire>
size_t TimingWheel::advance(Nanos now, Fire&& fire) {
  if (bound_ <= now) bound_ = kUnknown;  // also if its timers were canceled
  if (size_ == 0) {
    if (ticks(now) > time_) time_ = ticks(now);
    return 0;
  }
  size_t fired = 0;
  if (!is_empty(late_)) {
    while (!is_empty(late_)) {
      Timer& timer = timer_of(*late_.next);
      unlink(timer);
      append(timer, firing_, kNoSlot);
    }
    fired += fire_all(fire);
  }
  const uint64_t target = ticks(now);
  while (levels_ != 0) {
    const unsigned level = lowest_level();
    const unsigned digit = lowest_digit(level);
    const uint64_t start = slot_start(level, digit);
    if (start > target) break;
    time_ = start;
    open_slot(level, digit);
    fired += fire_all(fire);
  }
  if (target > time_) time_ = target;
  return fired;
}

}  // namespace roci
