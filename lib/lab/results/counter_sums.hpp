// Sums of the counters of all hosts and of all switches of a network.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "lab/network/network.hpp"

namespace roci::lab {

struct CounterSums {
  std::map<std::string, uint64_t> hosts, switches, drops;  // by name; drops by reason, and "all"
  [[nodiscard]] CounterSums minus(const CounterSums& before) const;
};
CounterSums count(Network& network);

}  // namespace roci::lab
