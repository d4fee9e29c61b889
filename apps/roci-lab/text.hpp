// Numbers and results as readable text.
#pragma once

#include <string>

#include "base/types.hpp"
#include "lab/execution/experiment.hpp"
#include "lab/results/results.hpp"

namespace roci::lab {

std::string short_number(double value);  // "1.23 M"
std::string span(Nanos time);            // "1.5 ms"
// "20.6 KB", "92.5 Gbit/s", "31.2 us". Without a unit: an integer, or four significant digits.
std::string with_unit(double value, const std::string& unit);

// Percentiles of the longest queue of a port in a summary; null if the summary has no queues.
const nlohmann::ordered_json* longest_queue(const nlohmann::ordered_json& summary);

// The heading of the result table, and one row per traffic of a run.
std::string result_heading();
std::string result_line(const std::string& name, const Measurements& of);
std::string result_line(const std::string& name, const StoredRun& of);

}  // namespace roci::lab
