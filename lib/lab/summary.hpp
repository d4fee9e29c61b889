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

// Flows by size, as the field's figures have them.
inline constexpr std::array<const char*, 9> kSizeNames = {"< 3 KB",       "3 to 10 KB",    "10 to 30 KB",
                                                          "30 to 100 KB", "100 to 300 KB", "0.3 to 1 MB",
                                                          "1 to 3 MB",    "3 to 10 MB",    ">= 10 MB"};

// Rounded to so many decimal digits; 0 for what is no number.
double to_digits(double value, int digits);

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
