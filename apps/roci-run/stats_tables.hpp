// Output of `roci-run --stats` after the program has exited.
#pragma once

#include <string>
#include <vector>

#include "net/stats_file.hpp"

namespace roci::run {

// For each process: its nonzero counters and its queue pairs. One line if no device was used.
std::string stats_tables(const std::vector<DeviceStats>& all);

}  // namespace roci::run
