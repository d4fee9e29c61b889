// What a congested queue has said about a flow, as a congestion control wants it, whichever way it came (CNM in layer 2 or
// through routers).
#pragma once

#include <cstdint>
#include <optional>

#include "base/types.hpp"
#include "wire/congestion_notification.hpp"
#include "wire/l3_congestion_notification.hpp"

namespace roci {

struct CongestionNotice {
  Nanos at{0};           // when it came
  uint8_t feedback = 0;  // quantised, 0 to 63: how much too fast; 0 when something else is to be said
  uint8_t priority = 0;  // of the packet that was sampled
  CongestionPointId point;
  int64_t queue_offset = 0;  // bytes: the queue beyond where it should be
  int64_t queue_delta = 0;   // bytes: how it grew since the sample before
  L3CnmTlvs more;            // what the switch said beside (L3QCN 6); layer 2 has no room for that
};

// The notices about one direction of a queue pair since it was connected.
struct CongestionRecord {
  uint64_t notices = 0;
  std::optional<CongestionNotice> latest;  // that nobody has taken
};

}  // namespace roci
