// PFC state of one priority: whether the link partner has paused it (wire/net/pause.hpp), with a watchdog against
// pauses without end. Switch ports and hosts have one per priority.
#pragma once

#include <algorithm>
#include <utility>

#include "base/types.hpp"

namespace roci {

// A priority that was paused for `detect` without interruption is sent nevertheless,
// until no pause frame has arrived for `restore`.
struct PauseWatchdogConfig {
  Nanos detect = 200ms;  // kNever: off
  Nanos restore = 100ms;

  friend bool operator==(const PauseWatchdogConfig&, const PauseWatchdogConfig&) = default;
};

// The watchdog of a configuration, in which a `detect` of 0 or below also means off.
inline PauseWatchdogConfig make_watchdog(Nanos detect, Nanos restore) {
  return {.detect = detect > Nanos{0} ? detect : kNever, .restore = restore};
}

// Owned by one thread.
class PauseState {
 public:
  enum class Outcome : uint8_t { kResume, kPause, kIgnored /* in a storm */ };

  // The link partner has paused the priority until `until`; a time that has passed means resume.
  // `starved`: frames wait since an earlier pause, and none was sent since. Pauses that expire while the owner does not
  // poll are then one pause, unless none has arrived for `restore`.
  Outcome on_pause(Nanos until, Nanos now, const PauseWatchdogConfig& watchdog, bool starved = false) {
    if (until <= now) {
      storm_ = false;
      until_ = until;
      return Outcome::kResume;
    }
    if (now >= storm_ends_) storm_ = false;
    storm_ends_ = after(now, watchdog.restore);
    if (storm_) return Outcome::kIgnored;
    if (until_ <= now && (!starved || now - until_ > watchdog.restore)) since_ = now;
    until_ = until;
    return Outcome::kPause;
  }
  [[nodiscard]] Nanos until() const { return until_; }
  // The time at which sending resumes: until(), or earlier if the watchdog ends the pause.
  [[nodiscard]] Nanos resume_time(const PauseWatchdogConfig& watchdog) const {
    return std::min(until_, after(since_, watchdog.detect));
  }
  // A frame is sent at `now`. Returns true if only the watchdog permits it; further pause frames are then ignored.
  bool break_at(Nanos now) {
    if (until_ <= now) return false;
    storm_ = true;
    until_ = now;
    return true;
  }

 private:
  static Nanos after(Nanos time, Nanos duration) {
    return duration < kNever - time ? time + duration : kNever;
  }

  Nanos until_{0};
  Nanos since_{0};
  Nanos storm_ends_{0};  // if no further pause arrives
  bool storm_ = false;
};

}  // namespace roci
