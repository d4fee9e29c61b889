// The frames that wait to leave by one port: first in, first out, up to a number of bytes
// and frames, no faster than a rate.
#pragma once

#include <rte_mbuf.h>

#include "base/growing_ring.hpp"
#include "base/line_clock.hpp"
#include "port/port.hpp"
#include "switch/counters.hpp"

namespace roci {

// Owned by the switch's thread. A frame starts at the later of its arrival and the end of the one before it, and
// occupies the line for its bytes and kEthernetLineOverhead. When the queue is polled too late, the frames that should
// have gone meanwhile go at once (up to kLongestCatchUp of them), so the rate holds on average under a real
// clock; a virtual runner polls at the exact time. The frame that is on the line is not in the queue any more.
class EgressQueue {
 public:
  static constexpr Nanos kLongestCatchUp = 100us;

  EgressQueue(BitsPerSec rate, Bytes limit, uint32_t frame_limit, SwitchPortCounters& counters)
      : line_(rate), limit_(limit.value()), frame_limit_(frame_limit), counters_(counters) {}
  ~EgressQueue();
  EgressQueue(const EgressQueue&) = delete;
  EgressQueue& operator=(const EgressQueue&) = delete;

  // Whether one more frame of `bytes` would still be within the limits.
  [[nodiscard]] bool has_room(uint32_t bytes) const {
    return bytes_ + bytes <= limit_ && waiting_.size() < frame_limit_;
  }
  // The caller has asked has_room().
  void push(rte_mbuf* frame, Nanos now);

  // Sends what is due, a burst at most, as far as the port takes it. Returns whether anything went.
  bool drain(Port& port, Nanos now);
  // When the next frame may start; kNever when none waits.
  [[nodiscard]] Nanos next_start() const;

  [[nodiscard]] uint64_t bytes() const { return bytes_; }

 private:
  struct Waiting {
    rte_mbuf* frame = nullptr;
    Nanos since{0};
  };
  static constexpr size_t kBurst = 32;

  GrowingRing<Waiting> waiting_;
  uint64_t bytes_ = 0;
  LineClock line_;
  uint64_t limit_;
  uint32_t frame_limit_;
  SwitchPortCounters& counters_;
};

}  // namespace roci
