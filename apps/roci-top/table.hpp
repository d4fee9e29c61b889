// Formats a snapshot as lines for a terminal: the hosts of all processes, all switches, and the queue pairs of each
// host.
#pragma once

#include <vector>

#include "roci-top/look.hpp"
#include "roci-top/snapshot.hpp"

namespace roci::top {

std::vector<Line> render(const Snapshot& now, const Snapshot& before, const Look& look);

}  // namespace roci::top
