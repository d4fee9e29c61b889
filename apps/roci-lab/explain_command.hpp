// roci-lab explain: what a scenario file comes down to, before anything runs.
#pragma once

#include "roci-lab/jobs.hpp"

namespace roci::lab {

// The exit status: 0, or 2 for a scenario that is not right.
int explain_command(const RunOptions& options);

}  // namespace roci::lab
