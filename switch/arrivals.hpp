// Where frames arrive next, for a switch whose ports can foresee it: in virtual time, where most of many ports have nothing most
// of the time. Without it the switch asks every port in every round.
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

  // When the next frame can be taken from any port.
  [[nodiscard]] virtual Nanos next() = 0;
  // The ports, in order, from which frames can be taken at `now`. The caller takes a burst from each before it asks again.
  virtual std::span<const uint16_t> due(Nanos now) = 0;
};

}  // namespace roci
