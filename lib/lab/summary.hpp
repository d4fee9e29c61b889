// What a run comes down to, in numbers.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "lab/experiment.hpp"
#include "lab/histogram.hpp"
#include "lab/network.hpp"

namespace roci::lab {

// Of all hosts and of all switches together, by name; those that are 0 are left out.
struct CounterSums {
  std::map<std::string, uint64_t> hosts, switches, drops;
  [[nodiscard]] CounterSums minus(const CounterSums& before) const;
};
CounterSums count(Network& network);

struct Measured {
  const CounterSums& counted;
  const std::vector<Histogram>& queues;         // by port, as in the series
  const std::vector<uint64_t>& bytes_measured;  // of each flow, between settle and the end
};
nlohmann::ordered_json summarise(const Scenario& scenario, const Measurements& of, const Measured& measured);

}  // namespace roci::lab
