// One direction of a simulated link; see sim_link.hpp.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "port/sim_link.hpp"

namespace roci {

class SimLink::Way {
 public:
  // `queues`: of the port at the far end.
  Way(const SimDirectionConfig& config, uint16_t queues, Rng rng, rte_mempool* copies);
  ~Way();
  Way(const Way&) = delete;
  Way& operator=(const Way&) = delete;

  // Takes the frame when the queue has room for it; loses it when the cable is not `up`.
  bool send(rte_mbuf* frame, Nanos now, bool up);
  // The next frame that has arrived by `now` for this queue of the far end, or null.
  rte_mbuf* receive(uint16_t queue, Nanos now);
  [[nodiscard]] Nanos next_arrival(uint16_t queue) const {
    return flying_[queue].empty() ? kNever : flying_[queue].front().arrival;
  }

  // Frames for this queue that have arrived by `now` and wait.
  [[nodiscard]] uint32_t waiting(uint16_t queue, Nanos now) const {
    return static_cast<uint32_t>(
        std::ranges::count_if(flying_[queue], [now](const Flying& f) { return f.arrival <= now; }));
  }

  // When a sender that was refused should try again; kNever when none was.
  [[nodiscard]] Nanos room_at() const;
  // Whether a refused sender can go on at `now`.
  bool wake(Nanos now);

  SimDirectionStats stats;
  SimFaults faults;
  SimScript script;
  LineClock line;

 private:
  struct Sending {
    Nanos done{0};
    uint32_t bytes = 0;
  };
  struct Flying {
    Nanos arrival{0};
    uint64_t order = 0;  // frames that arrive together keep their order
    rte_mbuf* frame = nullptr;
  };
  struct Later {
    bool operator()(const Flying& x, const Flying& y) const {
      return x.arrival != y.arrival ? x.arrival > y.arrival : x.order > y.order;
    }
  };

  void retire(Nanos now);
  rte_mbuf* own(rte_mbuf* frame);
  void harm(rte_mbuf* frame, const SimVerdict& verdict, const SimFaults& random);
  void fly(rte_mbuf* frame, Nanos arrival);
  [[nodiscard]] size_t queue_of(const rte_mbuf* frame) const;

  Nanos delay_;
  uint64_t queue_limit_;
  Rng rng_;
  rte_mempool* copies_;
  GrowingRing<Sending> sending_;  // not completely on the line yet, oldest first
  uint64_t sending_bytes_ = 0;
  std::vector<std::vector<Flying>> flying_;  // for each queue a heap, first arrival on top
  uint64_t order_ = 0;
  bool refused_ = false;
};

}  // namespace roci
