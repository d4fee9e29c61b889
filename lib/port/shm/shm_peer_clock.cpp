#include "port/shm/shm_peer_clock.hpp"

#include <algorithm>

#include "base/os/scheduling.hpp"
#include "port/shm/shm_slot_owner.hpp"

namespace roci {
namespace {

// A peer that has not polled for this time is not scheduled, or is stopped.
constexpr Nanos kAway{2'000'000};
// A peer whose process has read no frames for this time is silent, regardless of the reason.
constexpr Nanos kMaxExcuse = 60s;
constexpr Nanos kStoppedCheck{20'000'000};

bool is_armed(const ShmSlot& slot) {
  return std::ranges::any_of(slot.wakeups, [](const WakeupWord& word) {
    return (word.value.load(std::memory_order_relaxed) & WakeupWord::kArmed) != 0;
  });
}

// The engine time of a slot, limited to valid ranges.
struct EngineTime {
  EngineTime(const ShmSlot& slot, Nanos now)
      : ran(std::clamp<int64_t>(slot.ran.load(std::memory_order_relaxed), 0, now.count())),
        since_poll(now.count() -
                   std::clamp<int64_t>(slot.polled.load(std::memory_order_relaxed), 0, now.count())),
        waits(slot.asleep.load(std::memory_order_relaxed) != 0 && is_armed(slot)) {}

  int64_t ran;
  Nanos since_poll;
  bool waits;  // blocked until a wake-up that has not been sent: idle
};

}  // namespace

const PeerTime& ShmPeerClock::read(const ShmSlot& slot, Ring ring, Nanos now) {
  const EngineTime engine(slot, now);
  // The lag of the engine time relative to the clock if the engine polled now.
  const int64_t behind =
      now.count() - engine.ran -
      (engine.waits ? engine.since_poll : std::min(engine.since_poll, ShmSlotOwner::kMaxPollGap)).count();
  const uint64_t incarnation = slot.incarnation.load(std::memory_order_relaxed);
  if (incarnation_ == incarnation && now > read_at_) {
    if (now - stopped_checked_ >= kStoppedCheck) {
      stopped_checked_ = now;
      stopped_ = engine.since_poll > kAway &&
                 is_stopped(static_cast<pid_t>(slot.pid.load(std::memory_order_relaxed)));
    }
    const Nanos window = now - read_at_;
    if (freed_ != ring.freed) {
      freed_ = ring.freed;
      freed_at_ = now;
    }
    const bool reads = now - freed_at_ < kMaxExcuse;
    const Nanos away = std::clamp(Nanos{behind - behind_}, Nanos{0}, window);
    const Nanos lost = ring.unread() && reads ? window : away;
    if (lost > Nanos{0} && !stopped_ && engine.since_poll < kMaxExcuse) {
      time_.lost += lost;
      time_.lost_at = now;
      time_.away += away;
      if (away > Nanos{0}) time_.away_at = now;
    }
  }
  note_read(ring, now, incarnation_ != incarnation);
  incarnation_ = incarnation;
  behind_ = behind;
  read_at_ = now;
  return time_;
}

void ShmPeerClock::note_read(Ring ring, Nanos now, bool new_owner) {
  if (!ring.unread()) {
    time_.read_until = now;
  } else if (!new_owner && static_cast<int64_t>(ring.freed - mark_) >= 0) {
    time_.read_until = marked_at_;
  } else if (!new_owner) {
    return;  // frames from before the mark are unread
  }
  mark_ = ring.written;
  marked_at_ = now;
}

bool ShmPeerClock::is_busy(const ShmSlot& slot, bool unread, Nanos now) const {
  if (stopped_) return false;
  if (unread) return true;
  const EngineTime engine(slot, now);
  return engine.since_poll > kAway && engine.since_poll < kMaxExcuse && !engine.waits;
}

}  // namespace roci
