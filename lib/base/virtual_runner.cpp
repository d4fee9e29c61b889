#include "base/virtual_runner.hpp"

#include <algorithm>
#include <string>

namespace roci {

void VirtualRunner::add(Poller& poller) { pollers_.push_back(&poller); }

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
    while (poll_round()) {
      if (stopped()) return Outcome::kStopped;
      if (++rounds == round_limit_) {
        return fail("virtual time stands still at " + std::to_string(now_.count()) + " ns: poller '" +
                        std::string{last_worker_->name()} + "' still claims work after " +
                        std::to_string(rounds) + " rounds at that instant",
                    ELOOP);
      }
    }
    const Nanos next = next_event();
    if (next == kNever) return Outcome::kIdle;
    if (next > limit) return Outcome::kLimit;
    now_ = next;
  }
}

bool VirtualRunner::poll_round() {
  bool worked = false;
  for (Poller* poller : pollers_) {
    if (poller->next_deadline() > now_ || !poller->poll(now_)) continue;
    worked = true;
    last_worker_ = poller;
  }
  return worked;
}

// A deadline that is already due after a round without work belongs to a poller that waits for another one;
// it is polled again with the next event.
Nanos VirtualRunner::next_event() const {
  Nanos next = kNever;
  for (const Poller* poller : pollers_) {
    const Nanos deadline = poller->next_deadline();
    if (deadline > now_) next = std::min(next, deadline);
  }
  return next;
}

}  // namespace roci
