// Formats a snapshot as lines for a terminal: the hosts of all processes, all switches, and the queue pairs of each
// host.
#pragma once

#include <vector>

#include "roci-top/readers/snapshot.hpp"
#include "roci-top/tables/look.hpp"

namespace roci::top {

std::vector<Line> render(const Snapshot& now, const Snapshot& before, const Look& look);

}  // namespace roci::top
