// What a queue has to give: the rate that each flow through it may take, by the control law of RCP (Dukkipati, "Rate Control
// Protocol", 2007), for congestion points that say more than how congested they are (L3QCN 6).
//
//   S = alpha (C - y) - beta q / rtt        what may be had more in a round trip, in all; negative: less
//   R = R (1 + S / C T / rtt)               of which each flow has its part
//
// four times in a round trip (T), and R never falls to less than half at once: the queue that flows leave which have just come
// together would have it fall to nothing. C is what the class may have of the line, y what came in for it, q what waits. R needs no number of flows: it falls as long as
// they send too much together and rises as long as they leave something.
#pragma once

#include <cstdint>

#include "base/types.hpp"

namespace roci {

// Owned by the switch's thread. Of one class of one port. Rates are those of the line, with all that a frame takes there.
class AvailableRate {
 public:
  // The gains of XCP (Katabi 2002), whose law of efficiency this is: stable whatever the delay.
  static constexpr double kAlpha = 0.4;
  static constexpr double kBeta = 0.226;

  struct Config {
    BitsPerSec line{0};
    double share = 1;  // of the line that the class has whatever the others do, 0 to 1
    Nanos rtt{0};      // of the flows, about; longer is slower, much shorter may swing
  };
  explicit AvailableRate(const Config& config);

  // A frame of `bytes` has come and `queue` bytes wait. `others`: all that classes which this one has to share with, or to
  // wait for, have sent so far, in bytes of the line.
  void arrived(uint32_t bytes, uint64_t queue, uint64_t others, Nanos now) {
    arrived_ += bytes;
    if (now - since_ >= rtt_ / kStepsOfRtt) update(queue, others, now);
  }

  // For a flow.
  [[nodiscard]] BitsPerSec rate() const { return BitsPerSec{static_cast<uint64_t>(rate_)}; }
  // By how many bits a second a flow that is sampled now shall change: what the class may have more or less since the sample
  // before, all of it, since a flow is sampled as often as it has part in the load.
  [[nodiscard]] int64_t take_change(Nanos now);

 private:
  static constexpr int64_t kStepsOfRtt = 4;

  void update(uint64_t queue, uint64_t others, Nanos now);

  double line_;
  double guaranteed_;
  Nanos rtt_;
  double rate_;
  double spare_ = 0;  // S
  uint64_t arrived_ = 0;
  uint64_t others_ = 0;
  Nanos since_{0};
  Nanos sampled_{0};
};

}  // namespace roci
