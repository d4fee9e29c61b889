// A hierarchical timing wheel: any number of timers, O(1) to set, move and cancel, and no allocation, because
// the timers are members of the objects that wait.
//
// The wheel is a radix tree of time. Level k has 64 slots of 64^k ns, and a timer stands on the level of the
// highest base-64 digit in which its deadline differs from the wheel's time. It moves down when that digit is
// reached, at most kLevels times in its life and only if it is not cancelled first, which most timers are. A
// bit mask per level says which slots hold timers, so a jump over seconds costs no more than a step of a
// nanosecond.
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
  TimerLink* next = nullptr;
  TimerLink* previous = nullptr;
};
}  // namespace internal

// One deadline that something waits for. Derive from it, or make it a member, to find the waiter again in the
// callback. Must be cancelled before it is destroyed, or outlive its wheel.
class Timer : private internal::TimerLink {
 public:
  Timer() = default;
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;
  ~Timer();

  [[nodiscard]] bool is_scheduled() const { return next != nullptr; }
  // The last deadline it was scheduled for.
  [[nodiscard]] Nanos deadline() const { return deadline_; }

 private:
  friend class TimingWheel;
  Nanos deadline_{0};
  uint16_t slot_ = 0;  // index into TimingWheel::slots_, or one of its special lists
};
static_assert(sizeof(Timer) == 32);

// Owned by one thread.
class TimingWheel {
 public:
  // `start` is the time of the first advance() or earlier.
  explicit TimingWheel(Nanos start = Nanos{0});
  TimingWheel(const TimingWheel&) = delete;
  TimingWheel& operator=(const TimingWheel&) = delete;
  ~TimingWheel();

  // Sets the timer, or moves it when it is set already. A deadline at or before the wheel's time fires in the
  // next advance() (not in the one that is running, so that a callback which keeps asking for "at once"
  // cannot hang it). kNever is the same as cancel().
  void schedule(Timer& timer, Nanos deadline);
  // Does nothing to a timer that is not set.
  void cancel(Timer& timer);

  // Calls fire(Timer&) for every timer with deadline <= now: first those that were late when they were
  // scheduled, in the order of scheduling; then the rest in the order of their deadlines, equal ones in the
  // order of scheduling. Never early, not by a nanosecond. The timer is not scheduled any more when fire() is
  // called, which may schedule and cancel any timer, this one too. Returns how many fired. `now` before the
  // wheel's time counts as that time.
  template <class Fire>
  size_t advance(Nanos now, Fire&& fire);

  // A time no later than that of the next advance() that fires something; kNever without timers. Exact while
  // the first occupied slot holds few timers, otherwise the start of that slot; an advance() to the time it
  // names always fires a timer or brings the answer closer, so a runner that jumps there gets on.
  [[nodiscard]] Nanos next_deadline() const;

  [[nodiscard]] size_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }
  // Where advance() left off.
  [[nodiscard]] Nanos now() const { return Nanos{static_cast<int64_t>(time_)}; }

 private:
  using Link = internal::TimerLink;
  static constexpr unsigned kDigitBits = 6;
  static constexpr unsigned kSlots = 1U << kDigitBits;
  static constexpr unsigned kLevels = 11;  // 66 bits hold every non-negative Nanos
  static constexpr uint16_t kLateSlot = kLevels * kSlots;
  static constexpr uint16_t kFiringSlot = kLateSlot + 1;
  static constexpr unsigned kExactScan = 8;  // how many timers next_deadline() looks at

  static uint64_t ticks(Nanos t) { return t.count() <= 0 ? 0 : static_cast<uint64_t>(t.count()); }
  static Timer& timer_of(Link& link) { return static_cast<Timer&>(link); }
  [[nodiscard]] static bool is_empty(const Link& list) { return list.next == &list; }
  static void clear(Link& list) { list.next = list.previous = &list; }

  [[nodiscard]] unsigned lowest_level() const { return static_cast<unsigned>(std::countr_zero(levels_)); }
  [[nodiscard]] uint64_t slot_start(unsigned level, unsigned digit) const;
  void append(Timer& timer, uint16_t slot);
  void place(Timer& timer);
  void unlink(Timer& timer);
  // Moves the timers of the first occupied slot: those due at its start to the firing list, the others down.
  void open_slot(unsigned level, unsigned digit);
  template <class Fire>
  size_t fire_all(Fire& fire);

  uint64_t time_ = 0;    // every timer in slots_ has a later deadline
  uint32_t levels_ = 0;  // bit k: level k has an occupied slot
  size_t size_ = 0;
  std::array<uint64_t, kLevels> occupied_{};  // bit d: slot d of that level is not empty
  std::array<Link, kFiringSlot + 1> slots_;   // circular lists with the slot as their head
};

template <class Fire>
size_t TimingWheel::fire_all(Fire& fire) {
  size_t fired = 0;
  Link& firing = slots_[kFiringSlot];
  while (!is_empty(firing)) {
    Timer& timer = timer_of(*firing.next);
    unlink(timer);
    ++fired;
    fire(timer);
  }
  return fired;
}

template <class Fire>
size_t TimingWheel::advance(Nanos now, Fire&& fire) {
  if (size_ == 0) {
    if (ticks(now) > time_) time_ = ticks(now);
    return 0;
  }
  size_t fired = 0;
  if (!is_empty(slots_[kLateSlot])) {
    while (!is_empty(slots_[kLateSlot])) {
      Timer& timer = timer_of(*slots_[kLateSlot].next);
      unlink(timer);
      append(timer, kFiringSlot);
    }
    fired += fire_all(fire);
  }
  const uint64_t target = ticks(now);
  while (levels_ != 0) {
    const unsigned level = lowest_level();
    const auto digit = static_cast<unsigned>(std::countr_zero(occupied_[level]));
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
