// Container of one object per port and class, such as the congestion points of a switch.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/rng.hpp"
#include "switch/switch_config.hpp"

namespace roci {

template <class Point>
class ClassPoints {
 public:
  // Calls make(port, class, seed), with the numbers of port and class, for each class whose `notify` is `method`. Seeds
  // are drawn for all ports and classes in order, so a class's draws do not depend on the configuration of others.
  template <class Make>
  ClassPoints(const SwitchConfig& config, ClassConfig::Notify method, uint64_t seed, const Make& make)
      : points_(config.ports.size() * kTrafficClasses) {
    Rng seeds = Rng{seed}.fork();
    for (size_t i = 0; i < points_.size(); ++i) {
      const uint64_t own = seeds.next();
      const auto port = static_cast<uint16_t>(i / kTrafficClasses);
      const auto traffic_class = static_cast<uint8_t>(i % kTrafficClasses);
      if (config.ports[port].classes[traffic_class].notify == method)
        points_[i] = make(port, traffic_class, own);
    }
  }

  // The class must have a point.
  [[nodiscard]] Point& of(uint16_t port, uint8_t traffic_class) {
    return *points_[index(port, traffic_class)];
  }
  // Bitmap of the port's classes that have a point.
  [[nodiscard]] uint8_t classes(uint16_t port) const {
    unsigned found = 0;
    for (uint8_t c = 0; c < kTrafficClasses; ++c)
      found |= static_cast<unsigned>(points_[index(port, c)] != nullptr) << c;
    return static_cast<uint8_t>(found);
  }

 private:
  static size_t index(uint16_t port, uint8_t traffic_class) {
    return port * size_t{kTrafficClasses} + traffic_class;
  }
  std::vector<std::unique_ptr<Point>> points_;
};

}  // namespace roci
