#include "lab/network/node.hpp"

#include <algorithm>

namespace roci::lab {

// The sender has pushed the frame. The fence orders the frame before the load of `arriving_`, and pairs with the fence
// of run(). Either run() finds the frame at the port, or this load returns the value that run() has stored, and the
// arrival is announced.
void Node::arriving(Nanos when) {
  std::atomic_thread_fence(std::memory_order_seq_cst);
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
  // Arrivals announced so far are visible at the ports. Those announced from now on are not before `end`.
  arriving_.exchange(kNever.count(), std::memory_order_acquire);
  std::atomic_thread_fence(std::memory_order_seq_cst);  // pairs with the fence of arriving()
  Nanos at = std::min({touched_, pollers_.next_after(now_), next_});
  touched_ = kNever;
  while (at < end) {
    now_ = std::max(now_, at);
    for (uint64_t rounds = 0; live_ ? pollers_.round_of_all(now_) : pollers_.round(now_);) {
      if (++rounds < (live_ ? kMaxLiveRounds : kMaxRounds)) continue;
      if (live_) break;
      stuck_ = pollers_.last_worker();
      return;
    }
    at = live_ ? pollers_.next_after(now_) : pollers_.next_after_round();
  }
  next_ = at;
}

}  // namespace roci::lab
