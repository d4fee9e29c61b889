// roci-lab explain: a description of a scenario file's runs, without executing them.
#pragma once

#include "roci-lab/jobs.hpp"

namespace roci::lab {

// Returns the exit status: 0, or 2 for an invalid scenario.
int explain_command(const RunOptions& options);

}  // namespace roci::lab
