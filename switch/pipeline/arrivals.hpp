// Arrival forecast for a switch with simulated ports: in virtual time most of many ports are idle most of the time.
// Without it, the switch polls every port in each round.
#pragma once

#include <cstdint>
#include <span>

#include "base/types.hpp"

namespace roci {

class SwitchArrivals {
 public:
  SwitchArrivals() = default;
  SwitchArrivals(const SwitchArrivals&) = delete;
  SwitchArrivals& operator=(const SwitchArrivals&) = delete;
  virtual ~SwitchArrivals() = default;

  // Time of the next frame that can be received from any port.
  [[nodiscard]] virtual Nanos next() = 0;
  // Ports with frames to receive at `now`, in ascending order. The caller receives a burst from each per call.
  virtual std::span<const uint16_t> due(Nanos now) = 0;
};

}  // namespace roci
