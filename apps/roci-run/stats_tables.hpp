// What `roci-run --stats` prints when the program has ended.
#pragma once

#include <string>
#include <vector>

#include "net/stats_file.hpp"

namespace roci::run {

// A table of the counters that are not 0 and one of the queue pairs for each process; a line when there are none.
std::string stats_tables(const std::vector<DeviceStats>& all);

}  // namespace roci::run
