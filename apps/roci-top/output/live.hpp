// The live view: samples all processes once per interval, and processes keys.
#pragma once

#include "base/result.hpp"
#include "roci-top/readers/processes.hpp"

namespace roci::top {

// Runs until the user exits. `first` is the initial snapshot.
Status run_live(Processes& processes, Snapshot first, Nanos interval);

}  // namespace roci::top
