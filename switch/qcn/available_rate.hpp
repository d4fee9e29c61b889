// Available rate per flow of a queue, by the control law of RCP (Dukkipati, "Rate Control Protocol", 2007). Congestion
// points report it in CNMs in addition to the feedback (L3QCN 6).
//
//   S = alpha (C - y) - beta q / rtt        spare rate of all flows in a round trip; negative: excess
//   R = R (1 + S / C T / rtt)               rate of each flow
//
// C is the line rate available to the class, y the rate of its arrivals, q its queue, and T the time since the last
// update: a quarter of the RTT. One update reduces R to no less than half. Otherwise the queue of flows that have
// started together would reduce R to zero. R does not depend on the number of flows: it falls while their total rate is
// too high, and rises while bandwidth is unused.
#pragma once

#include <cstdint>

#include "base/types.hpp"

namespace roci {

// Control state of one class of one port. Owned by one switch worker. Rates are those on the line, with preamble, FCS
// and inter-frame gap.
class AvailableRate {
 public:
  // Gains of XCP (Katabi 2002), whose efficiency control law this is: stable for any delay.
  static constexpr double kAlpha = 0.4;
  static constexpr double kBeta = 0.226;

  struct Config {
    BitsPerSec line{0};
    double share = 1;  // guaranteed part of the line rate, 0 to 1
    // Typical RTT of the flows. A longer value slows the control, a much shorter one may cause oscillation.
    Nanos rtt{0};
  };
  explicit AvailableRate(const Config& config);

  // Called when a frame of `bytes` arrives and `queue` bytes wait. `others`: bytes on the line sent so far by the
  // classes that share the line with this one or precede it.
  void arrived(uint32_t bytes, uint64_t queue, uint64_t others, Nanos now) {
    arrived_ += bytes;
    if (now - since_ >= rtt_ / kStepsOfRtt) update(queue, others, now);
  }

  // Rate per flow.
  [[nodiscard]] BitsPerSec rate() const { return BitsPerSec{static_cast<uint64_t>(rate_)}; }
  // Rate change in b/s for a flow that is sampled now: the entire rate that the class has gained or lost since the last
  // sample. Flows are sampled in proportion to their load, so over time each gets its part.
  [[nodiscard]] int64_t take_change(Nanos now);

 private:
  static constexpr int64_t kStepsOfRtt = 4;

  void update(uint64_t queue, uint64_t others, Nanos now);

  double line_;
  double guaranteed_;
  Nanos rtt_;
  double rate_;
  double spare_ = 0;  // S, in b/s
  uint64_t arrived_ = 0;
  uint64_t others_ = 0;
  Nanos since_{0};
  Nanos sampled_{0};
};

}  // namespace roci
