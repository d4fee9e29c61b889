// What a run comes down to, in numbers.
#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

#include "lab/experiment.hpp"
#include "lab/meter.hpp"

namespace roci::lab {

// Flows by size, as the field's figures have them.
inline constexpr std::array<const char*, 9> kSizeNames = {"< 3 KB",       "3 to 10 KB",    "10 to 30 KB",
                                                          "30 to 100 KB", "100 to 300 KB", "0.3 to 1 MB",
                                                          "1 to 3 MB",    "3 to 10 MB",    ">= 10 MB"};

// Rounded to so many decimal digits; 0 for what is no number.
double to_digits(double value, int digits);

// `whole` is from settle to the end, `windows` are the scenario's.
nlohmann::ordered_json summarise(const Scenario& scenario, const Measurements& of, const Meter& whole,
                                 const std::vector<Meter>& windows);

}  // namespace roci::lab
