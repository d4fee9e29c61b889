// One direction of a simulated link (sim_link.hpp). The sender and the receiver may be two threads.
#pragma once

#include <span>
#include <vector>

#include "base/containers/spsc_queue.hpp"
#include "port/sim/sim_link.hpp"

namespace roci {

class SimLink::Channel {
 public:
  // `queues`: number of queues of the receiving port.
  Channel(const SimDirectionConfig& config, uint16_t queues, Rng rng, rte_mempool* copies);
  ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  // Accepts the frame if the queue has space; drops it if the cable is not `up`.
  bool send(rte_mbuf* frame, Nanos now, bool up);
  // Called by the receiver: the next frame that has arrived by `now` for this queue of the receiving port, or null.
  rte_mbuf* receive(uint16_t queue, Nanos now);
  [[nodiscard]] Nanos next_arrival(uint16_t queue) {
    collect();
    return arriving_[queue].next();
  }
  // Number of frames for this queue that have arrived by `now`.
  [[nodiscard]] uint32_t waiting(uint16_t queue, Nanos now) {
    collect();
    return arriving_[queue].count(now);
  }

  // When a refused sender should retry; kNever if none was refused.
  [[nodiscard]] Nanos next_free() const;
  // Whether a refused sender can continue at `now`.
  bool wake(Nanos now);

  void listen(ArrivalListener* listener) { listener_ = listener; }

  SimDirectionStats stats;
  SimFaults faults;
  SimScript script;
  LineClock line;

 private:
  struct Sending {
    Nanos done{0};
    uint32_t bytes = 0;
  };
  struct InFlightFrame {
    Nanos arrival{0};
    uint64_t order = 0;  // frames that arrive together keep their order
    rte_mbuf* frame = nullptr;
    uint16_t queue = 0;
    bool late = false;  // frames that were sent after it may arrive before it
  };
  struct Later {
    bool operator()(const InFlightFrame& x, const InFlightFrame& y) const {
      return x.arrival != y.arrival ? x.arrival > y.arrival : x.order > y.order;
    }
  };
  // Frames in flight to one queue.
  class Arrivals {
   public:
    Arrivals() = default;
    void add(const InFlightFrame& frame);
    [[nodiscard]] Nanos next() const;
    // The first to arrive; must exist.
    InFlightFrame take();
    [[nodiscard]] uint32_t count(Nanos by) const;

   private:
    [[nodiscard]] bool reordered_is_first() const {
      return !late_.empty() && (in_order_.empty() || Later{}(in_order_.front(), late_.front()));
    }
    GrowingRing<InFlightFrame> in_order_{4};
    std::vector<InFlightFrame> late_;  // heap, first arrival on top
  };

  void retire(Nanos now);
  rte_mbuf* own(rte_mbuf* frame);
  void corrupt(rte_mbuf* frame, const SimVerdict& verdict, const SimFaults& random);
  void deliver_at(rte_mbuf* frame, Nanos arrival, bool late);
  void collect();
  [[nodiscard]] size_t queue_of(const rte_mbuf* frame) const;

  Nanos delay_;
  uint64_t queue_limit_;
  Rng rng_;
  rte_mempool* copies_;
  GrowingRing<Sending> sending_{4};  // not completely transmitted, oldest first
  uint64_t sending_bytes_ = 0;
  size_t queues_;  // of the receiving port
  uint64_t order_ = 0;
  bool refused_ = false;
  ArrivalListener* listener_ = nullptr;
  SpscQueue<InFlightFrame> in_transit_;  // from the sender to the receiver
  // Used by the receiver.
  std::vector<Arrivals> arriving_;  // per queue
};

}  // namespace roci
