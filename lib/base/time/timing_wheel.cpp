#include "base/time/timing_wheel.hpp"

#include <algorithm>
#include <cassert>

namespace roci {

Timer::~Timer() { assert(!is_scheduled()); }

TimingWheel::TimingWheel(Nanos start) : time_(ticks(start)) {
  clear(late_);
  clear(firing_);
}

TimingWheel::~TimingWheel() {
  while (!is_empty(late_)) unlink(timer_of(*late_.next));
  while (!is_empty(firing_)) unlink(timer_of(*firing_.next));
  while (levels_ != 0) {
    const unsigned level = lowest_level();
    unlink(timer_of(*slots_[level * kSlots + lowest_digit(level)].next));
  }
}

void TimingWheel::schedule(Timer& timer, Nanos deadline) {
  if (timer.is_scheduled()) unlink(timer);
  timer.deadline_ = deadline;
  if (deadline == kNever) return;
  if (ticks(deadline) <= time_) {
    append(timer, late_, kNoSlot);
    bound_ = kUnknown;
  } else {
    place(timer);
    bound_ = std::min(bound_, deadline);  // unknown remains unknown
  }
}

void TimingWheel::cancel(Timer& timer) {
  if (timer.is_scheduled()) unlink(timer);
}

Nanos TimingWheel::find_next_deadline() const {
  if (!is_empty(late_)) return now();
  if (levels_ == 0) return kNever;
  const unsigned level = lowest_level();
  const unsigned digit = lowest_digit(level);
  const Link& slot = slots_[level * kSlots + digit];
  Nanos earliest = kNever;
  unsigned seen = 0;
  for (Link* link = slot.next; link != &slot; link = link->next) {
    if (++seen > kExactScan) return Nanos{static_cast<int64_t>(slot_start(level, digit))};
    earliest = std::min(earliest, timer_of(*link).deadline_);
  }
  return earliest;
}

// The digits above `level` are those of the wheel's time: timers that differ there are on a higher level.
uint64_t TimingWheel::slot_start(unsigned level, unsigned digit) const {
  const unsigned shift = level * kDigitBits;
  const unsigned above = shift + kDigitBits;
  const uint64_t upper = above >= 64 ? 0 : time_ >> above << above;
  return upper | static_cast<uint64_t>(digit) << shift;
}

void TimingWheel::append(Timer& timer, Link& list, uint16_t slot) {
  Link& link = timer;
  link.next = &list;
  link.previous = list.previous;
  list.previous->next = &link;
  list.previous = &link;
  timer.slot_ = slot;
  ++size_;
}

void TimingWheel::place(Timer& timer) {
  const uint64_t when = ticks(timer.deadline_);
  const unsigned level = (63U - static_cast<unsigned>(std::countl_zero(when ^ time_))) / kDigitBits;
  const auto digit = static_cast<unsigned>(when >> (level * kDigitBits)) & (kSlots - 1);
  const auto slot = static_cast<uint16_t>(level * kSlots + digit);
  const uint64_t bit = uint64_t{1} << digit;
  if ((occupied_[level] & bit) == 0) clear(slots_[slot]);
  append(timer, slots_[slot], slot);
  occupied_[level] |= bit;
  levels_ |= 1U << level;
}

void TimingWheel::unlink(Timer& timer) {
  Link& link = timer;
  link.previous->next = link.next;
  link.next->previous = link.previous;
  link.next = link.previous = nullptr;
  --size_;
  if (timer.deadline_ <= bound_) bound_ = kUnknown;
  if (timer.slot_ == kNoSlot || !is_empty(slots_[timer.slot_])) return;
  const unsigned level = timer.slot_ / kSlots;
  occupied_[level] &= ~(uint64_t{1} << (timer.slot_ % kSlots));
  if (occupied_[level] == 0) levels_ &= ~(1U << level);
}

void TimingWheel::open_slot(unsigned level, unsigned digit) {
  bound_ = kUnknown;
  Link& slot = slots_[level * kSlots + digit];
  while (!is_empty(slot)) {
    Timer& timer = timer_of(*slot.next);
    unlink(timer);
    if (ticks(timer.deadline_) == time_) {
      append(timer, firing_, kNoSlot);
    } else {
      place(timer);
    }
  }
}

}  // namespace roci
