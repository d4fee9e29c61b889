// Pollers that share an instant of virtual time: what is due is done until nothing is, and then the next instant is asked for.
#pragma once

#include <vector>

#include "base/poller.hpp"

namespace roci {

class PollerGroup {
 public:
  // Pollers are polled in the order they were added, and outlive the group.
  void add(Poller& poller) { pollers_.push_back(&poller); }

  // Polls those that are due. Whether any did something: then the same instant is due once more.
  bool round(Nanos now) { return poll(now, false); }
  // The same of all of them, for those that do not know when they are due: real ports announce nothing.
  bool round_of_all(Nanos now) { return poll(now, true); }
  // The first deadline behind `now`. One that is due after a round without work belongs to a poller that waits for another
  // one; it is polled again with the next event.
  [[nodiscard]] Nanos next_after(Nanos now) const;
  // Of those that ever did something, the last; for sentences about one that does not end.
  [[nodiscard]] const Poller* last_worker() const { return last_worker_; }

 private:
  bool poll(Nanos now, bool all);

  std::vector<Poller*> pollers_;
  const Poller* last_worker_ = nullptr;
};

}  // namespace roci
