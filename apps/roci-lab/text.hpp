// Numbers and results as readable text.
#pragma once

#include <string>
#include <utility>
#include <vector>

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

// Slowdowns by size, p50, p95 and p99: a row per traffic and size, and a column per run, with its name.
std::string slowdown_table(const std::vector<std::pair<std::string, const StoredRun*>>& runs);

}  // namespace roci::lab
