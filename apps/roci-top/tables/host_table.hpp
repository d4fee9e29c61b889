// The table of all hosts. Each host has a row with rates since the previous snapshot, and lines with its addresses,
// process and errors.
#pragma once

#include <vector>

#include "roci-top/readers/snapshot.hpp"
#include "roci-top/tables/look.hpp"

namespace roci::top {

void add_hosts(std::vector<Line>& lines, const Snapshot& now, const Snapshot& before, const Look& look);

}  // namespace roci::top
