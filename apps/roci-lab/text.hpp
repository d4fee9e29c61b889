// Numbers and results as people read them.
#pragma once

#include <string>

#include "base/types.hpp"
#include "lab/experiment.hpp"
#include "lab/results.hpp"

namespace roci::lab {

std::string short_number(double value);  // "1.23 M"
std::string span(Nanos time);            // "1.5 ms"
// "20.6 KB", "92.5 Gbit/s", "31.2 us"; whole numbers, or four digits, where there is no unit.
std::string with_unit(double value, const std::string& unit);

// A run in a line of a table, and what stands above.
std::string result_heading();
std::string result_line(const std::string& name, const Measurements& of);
std::string result_line(const std::string& name, const StoredRun& of);

}  // namespace roci::lab
