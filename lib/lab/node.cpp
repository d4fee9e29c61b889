#include "lab/node.hpp"

#include <algorithm>

namespace roci::lab {

void Node::arriving(Nanos when) {
  int64_t least = arriving_.load(std::memory_order_relaxed);
  while (when.count() < least &&
         !arriving_.compare_exchange_weak(least, when.count(), std::memory_order_release,
                                          std::memory_order_relaxed)) {
  }
}

Nanos Node::next() const {
  return std::min({next_, touched_, Nanos{arriving_.load(std::memory_order_acquire)}});
}

void Node::run(Nanos end) {
  // What was announced until now can be seen at the ports; what is from now on arrives after `end`.
  arriving_.store(kNever.count(), std::memory_order_relaxed);
  Nanos at = std::min({touched_, next_deadline(), next_});
  touched_ = kNever;
  while (at < end) {
    now_ = std::max(now_, at);
    for (uint64_t rounds = 0; round();) {
      if (++rounds < kMostRounds) continue;
      stuck_ = last_worker_;
      return;
    }
    at = next_deadline();
  }
  next_ = at;
}

bool Node::round() {
  bool worked = false;
  for (Poller* poller : pollers_) {
    if (poller->next_deadline() > now_ || !poller->poll(now_)) continue;
    worked = true;
    last_worker_ = poller;
  }
  return worked;
}

// One that is due after a round without work belongs to a poller that waits for another one; it is polled again with the
// next event.
Nanos Node::next_deadline() const {
  Nanos next = kNever;
  for (const Poller* poller : pollers_) {
    const Nanos deadline = poller->next_deadline();
    if (deadline > now_) next = std::min(next, deadline);
  }
  return next;
}

}  // namespace roci::lab
