// The live view: looks at all processes once an interval, and does what keys say.
#pragma once

#include "base/result.hpp"
#include "roci-top/processes.hpp"

namespace roci::top {

// Until somebody ends it. `first` is what was there at the start.
Status run_live(Processes& processes, Snapshot first, Nanos interval);

}  // namespace roci::top
