// roci-lab run: executes the runs of a scenario file and writes their results into files.
#pragma once

#include "roci-lab/jobs.hpp"

namespace roci::lab {

// Returns the exit status: 0, 1 for a failed run or an unexpected result of an expectation, 2 for an invalid scenario, 130
// after Ctrl-C or SIGTERM.
int run_command(const RunOptions& options);

}  // namespace roci::lab
