// Group of pollers at one instant of virtual time. It is polled until no poller has work, then next_after_round() returns
// the next instant.
#pragma once

#include <vector>

#include "base/types.hpp"
#include "roci/poller.hpp"

namespace roci {

class PollerGroup {
 public:
  // Pollers are polled in the order in which they were added. They must outlive the group.
  void add(Poller& poller) { pollers_.push_back(&poller); }

  // Polls the pollers that are due. Returns whether any did work; the same instant is then due again.
  bool round(Nanos now) { return poll(now, false); }
  // The same for all pollers, also for those without a deadline: real ports do not announce frames.
  bool round_of_all(Nanos now) { return poll(now, true); }
  // First deadline after `now`. A poller that is due after a round without work waits for another poller; it is polled
  // again at the next event.
  [[nodiscard]] Nanos next_after(Nanos now) const;
  // The result of next_after() for the instant of the last round, if that round did no work. It costs nothing: the round
  // has read the deadlines.
  [[nodiscard]] Nanos next_after_round() const { return next_; }
  // Poller that last did work, or null; for messages about a poller that does not become idle.
  [[nodiscard]] const Poller* last_worker() const { return last_worker_; }

 private:
  bool poll(Nanos now, bool all);

  std::vector<Poller*> pollers_;
  Nanos next_ = kNever;  // first deadline after the last round
  const Poller* last_worker_ = nullptr;
};

}  // namespace roci
