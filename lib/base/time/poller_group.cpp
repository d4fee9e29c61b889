#include "base/time/poller_group.hpp"

#include <algorithm>

namespace roci {

bool PollerGroup::poll(Nanos now, bool all) {
  bool worked = false;
  for (Poller* poller : pollers_) {
    if ((!all && poller->next_deadline() > now) || !poller->poll(now)) continue;
    worked = true;
    last_worker_ = poller;
  }
  return worked;
}

Nanos PollerGroup::next_after(Nanos now) const {
  Nanos next = kNever;
  for (const Poller* poller : pollers_) {
    const Nanos deadline = poller->next_deadline();
    if (deadline > now) next = std::min(next, deadline);
  }
  return next;
}

}  // namespace roci
