// What all hosts and all switches of a network have counted, together.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "lab/network.hpp"

namespace roci::lab {

struct CounterSums {
  std::map<std::string, uint64_t> hosts, switches, drops;  // by name; drops by their reasons, and "all"
  [[nodiscard]] CounterSums minus(const CounterSums& before) const;
};
CounterSums count(Network& network);

}  // namespace roci::lab
