#include "base/time/poller_group.hpp"

#include <algorithm>

namespace roci {

bool PollerGroup::poll(Nanos now, bool all) {
  bool worked = false;
  next_ = kNever;
  for (Poller* poller : pollers_) {
    Nanos deadline = all ? now : poller->next_deadline();
    if (deadline <= now) {
      if (poller->poll(now)) {
        worked = true;
        last_worker_ = poller;
      }
      if (worked) continue;  // there is another round
      deadline = poller->next_deadline();
    }
    if (deadline > now) next_ = std::min(next_, deadline);
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
