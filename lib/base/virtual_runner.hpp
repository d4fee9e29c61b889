// Virtual time: a discrete-event loop over pollers. It polls what is due, lets everything settle at that
// instant, and jumps to the earliest deadline. Seconds of a sleeping network cost nothing, and the same
// pollers with the same seeds do the same things in the same order, always.
#pragma once

#include <functional>

#include "base/poller_group.hpp"
#include "base/result.hpp"
#include "base/types.hpp"

namespace roci {

// Used by one thread, which is then the one that owns all its pollers.
class VirtualRunner {
 public:
  // How often every poller may be polled at one instant before the runner says that time stands still.
  // Generous: with links of no delay and no rate a whole transfer happens at one instant.
  static constexpr uint64_t kDefaultRoundLimit = 1'000'000;

  explicit VirtualRunner(uint64_t round_limit = kDefaultRoundLimit) : round_limit_(round_limit) {}

  // Pollers are polled in the order they were added. They must outlive the runner.
  void add(Poller& poller) { pollers_.add(poller); }

  [[nodiscard]] Nanos now() const { return now_; }

  // Does everything due up to and including `until`; now() is `until` then. Every run_* fails only when time
  // stands still, and names the poller that keeps claiming work.
  Status run_until(Nanos until);

  // Runs as long as `wanted` says true, at most until `limit`. `wanted` is asked before the first and after
  // every round of polls. Gives true when it said false, and false when the limit came first or nothing is
  // left to happen; now() is the time of the last event.
  Result<bool> run_while(const std::function<bool()>& wanted, Nanos limit = kNever);

  // Runs until no poller has a deadline left: true; or until `limit`: false, and now() is the last event's
  // time. A poller that is due but can do nothing and waits for no time, like a sender on a port that stays
  // full, counts as idle.
  Result<bool> run_until_idle(Nanos limit = kNever);

 private:
  enum class Outcome { kIdle, kLimit, kStopped };
  Result<Outcome> run(const std::function<bool()>* wanted, Nanos limit);

  PollerGroup pollers_;
  Nanos now_{0};
  uint64_t round_limit_;
};

}  // namespace roci
