// roci-lab run: every run of a scenario file, with its results in files.
#pragma once

#include "roci-lab/jobs.hpp"

namespace roci::lab {

// The exit status: 0, 1 for a run that failed or an expectation that does not hold, 2 for a scenario that is not right, 130
// when Ctrl-C or SIGTERM has stopped it.
int run_command(const RunOptions& options);

}  // namespace roci::lab
