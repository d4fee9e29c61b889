// Runner in virtual time: a discrete-event loop over pollers. It polls the pollers that are due until none has work,
// then advances to the earliest deadline. Idle time costs nothing. The same pollers with the same seeds always execute
// the same steps in the same order.
#pragma once

#include <functional>

#include "base/result.hpp"
#include "base/time/poller_group.hpp"
#include "base/types.hpp"

namespace roci {

// Used by one thread, which owns all its pollers.
class VirtualRunner {
 public:
  // Maximum number of rounds at one instant, after which the runner reports that time does not advance. The limit is
  // large because a whole transfer takes place at one instant on links without delay and rate limit.
  static constexpr uint64_t kDefaultRoundLimit = 1'000'000;

  explicit VirtualRunner(uint64_t round_limit = kDefaultRoundLimit) : round_limit_(round_limit) {}

  // Pollers are polled in the order in which they were added. They must outlive the runner.
  void add(Poller& poller) { pollers_.add(poller); }

  [[nodiscard]] Nanos now() const { return now_; }

  // Executes everything due up to and including `until`; now() is `until` afterwards. All run_* functions fail only if
  // time does not advance; the error names the poller that always has work.
  Status run_until(Nanos until);

  // Runs while `wanted` returns true, at most until `limit`. `wanted` is called before the first round and after every
  // round of polls. Returns true if it returned false, and false if the limit was reached or no event is left; now() is
  // the time of the last event.
  Result<bool> run_while(const std::function<bool()>& wanted, Nanos limit = kNever);

  // Runs until no poller has a deadline (returns true), or until `limit` (returns false); now() is the time of the last
  // event. A poller that is due but has no work and no later deadline counts as idle, for example a sender on a full
  // port.
  Result<bool> run_until_idle(Nanos limit = kNever);

 private:
  enum class Outcome { kIdle, kLimit, kStopped };
  Result<Outcome> run(const std::function<bool()>* wanted, Nanos limit);

  PollerGroup pollers_;
  Nanos now_{0};
  uint64_t round_limit_;
};

}  // namespace roci
