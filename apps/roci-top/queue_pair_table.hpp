// The table of a host's queue pairs: a row for the requests of each, and one for the READ responses that it sends; with
// rates since the snapshot before and what congestion control does.
#pragma once

#include <vector>

#include "roci-top/look.hpp"
#include "roci-top/snapshot.hpp"

namespace roci::top {

// Nothing when there are none. `before`: null when the host was not there.
void add_queue_pairs(std::vector<Line>& lines, const ProcessSeen& process, const HostSeen& host,
                     const HostSeen* before, const Look& look);

}  // namespace roci::top
