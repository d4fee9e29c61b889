// Congestion notification from a switch queue about a flow, in the form that congestion control reads. The source is a
// CNM in layer 2 (QCN) or a routed one (L3QCN).
#pragma once

#include <cstdint>
#include <optional>

#include "base/types.hpp"
#include "wire/cnm/congestion_notification.hpp"
#include "wire/cnm/l3_congestion_notification.hpp"

namespace roci {

// Content of one notification.
struct CongestionNotice {
  Nanos at{0};           // time of reception
  uint8_t feedback = 0;  // quantized, 0 to 63: excess of the rate; 0 in a notification without feedback
  uint8_t priority = 0;  // of the sampled packet
  CongestionPointId point;
  int64_t queue_offset = 0;  // bytes: queue length minus its set point
  int64_t queue_delta = 0;   // bytes: growth since the previous sample
  L3CnmTlvs more;            // further values of the switch (L3QCN 6); absent in layer 2
};

// Notifications about one direction of a queue pair since it was connected.
struct CongestionRecord {
  uint64_t notices = 0;
  std::optional<CongestionNotice> latest;  // not yet passed to congestion control
};

}  // namespace roci
