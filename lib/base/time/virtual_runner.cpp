#include "base/time/virtual_runner.hpp"

#include <algorithm>
#include <string>

namespace roci {

Status VirtualRunner::run_until(Nanos until) {
  auto outcome = run(nullptr, until);
  if (!outcome) return fail(std::move(outcome).error());
  now_ = std::max(now_, until);
  return {};
}

Result<bool> VirtualRunner::run_while(const std::function<bool()>& wanted, Nanos limit) {
  return run(&wanted, limit).map([](Outcome o) { return o == Outcome::kStopped; });
}

Result<bool> VirtualRunner::run_until_idle(Nanos limit) {
  return run(nullptr, limit).map([](Outcome o) { return o == Outcome::kIdle; });
}

Result<VirtualRunner::Outcome> VirtualRunner::run(const std::function<bool()>* wanted, Nanos limit) {
  const auto stopped = [wanted] { return wanted != nullptr && !(*wanted)(); };
  if (stopped()) return Outcome::kStopped;
  for (;;) {
    uint64_t rounds = 0;
    while (pollers_.round(now_)) {
      if (stopped()) return Outcome::kStopped;
      if (++rounds == round_limit_) {
        return fail("virtual time does not advance at " + std::to_string(now_.count()) + " ns: poller '" +
                        std::string{pollers_.last_worker()->name()} + "' still reports work after " +
                        std::to_string(rounds) + " rounds",
                    ELOOP);
      }
    }
    const Nanos next = pollers_.next_after_round();
    if (next == kNever) return Outcome::kIdle;
    if (next > limit) return Outcome::kLimit;
    now_ = next;
  }
}

}  // namespace roci
