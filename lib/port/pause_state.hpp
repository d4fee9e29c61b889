// Whether the neighbour at the other end of a line wants nothing of one priority at the moment (PFC, wire/pause.hpp), with
// the watchdog against neighbours that pause for ever. Switch ports and hosts have one for each priority.
#pragma once

#include <algorithm>
#include <utility>

#include "base/types.hpp"

namespace roci {

// What has been paused for `detect` without a break is sent all the same, until no pause has come for `restore`.
struct PauseWatchdogConfig {
  Nanos detect = kNever;
  Nanos restore = 100ms;

  friend bool operator==(const PauseWatchdogConfig&, const PauseWatchdogConfig&) = default;
};

// Owned by one thread.
class PauseState {
 public:
  enum class Heard : uint8_t { kGo, kPause, kIgnored /* in a storm */ };

  // The neighbour wants nothing before `until`; what is over by then means: go on.
  Heard hear(Nanos until, Nanos now, const PauseWatchdogConfig& watchdog) {
    if (until <= now) {
      storm_ = false;
      until_ = until;
      return Heard::kGo;
    }
    if (now - std::exchange(heard_, now) >= watchdog.restore) storm_ = false;
    if (storm_) return Heard::kIgnored;
    if (until_ <= now) since_ = now;
    until_ = until;
    return Heard::kPause;
  }
  [[nodiscard]] Nanos until() const { return until_; }
  // The same, but no later than the watchdog lets things go.
  [[nodiscard]] Nanos over(const PauseWatchdogConfig& watchdog) const {
    return watchdog.detect == kNever ? until_ : std::min(until_, since_ + watchdog.detect);
  }
  // Something is sent at `now`. True when only the watchdog lets it: then the pause is no longer listened to.
  bool break_at(Nanos now) {
    if (until_ <= now) return false;
    storm_ = true;
    until_ = now;
    return true;
  }

 private:
  Nanos until_{0};
  Nanos since_{0};
  Nanos heard_{-1};  // when the last pause came
  bool storm_ = false;
};

}  // namespace roci
