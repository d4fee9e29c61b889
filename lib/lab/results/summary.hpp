// Summary of a run: its results in numbers.
#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

#include "lab/execution/experiment.hpp"
#include "lab/results/meter.hpp"

namespace roci::lab {

// Size classes of flows, as in published figures.
inline constexpr std::array<const char*, 9> kSizeNames = {"< 3 KB",       "3 to 10 KB",    "10 to 30 KB",
                                                          "30 to 100 KB", "100 to 300 KB", "0.3 to 1 MB",
                                                          "1 to 3 MB",    "3 to 10 MB",    ">= 10 MB"};

// Rounds to this number of significant decimal digits; 0 for values that are not finite.
double to_digits(double value, int digits);

struct FlowTime {
  uint64_t bytes = 0;
  double duration = 0, ideal = 0;  // ns
};
// Completion times and slowdowns by size, of completed flows: `ended`, `completion_ns`, `slowdown`.
nlohmann::ordered_json completion_summary(const std::vector<FlowTime>& flows);

// `whole` is from settle to the end; `windows` are those of the scenario.
nlohmann::ordered_json summarize(const Scenario& scenario, const Measurements& of, const Meter& whole,
                                 const std::vector<Meter>& windows);

}  // namespace roci::lab
