// The table of a host's queue pairs: one row for the requests of a queue pair and one for the READ responses that it
// sends, with rates since the previous snapshot and the congestion control state.
#pragma once

#include <vector>

#include "roci-top/readers/snapshot.hpp"
#include "roci-top/tables/look.hpp"

namespace roci::top {

// Adds nothing for a host without queue pairs. `before`: null if the host has no earlier sample.
void add_queue_pairs(std::vector<Line>& lines, const ProcessSample& process, const HostSample& host,
                     const HostSample* before, const Look& look);

}  // namespace roci::top
