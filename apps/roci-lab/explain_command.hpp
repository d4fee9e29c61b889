// roci-lab explain: what a scenario file comes down to, before anything runs. roci-lab list: which files there are.
#pragma once

#include <string>
#include <vector>

#include "roci-lab/jobs.hpp"

namespace roci::lab {

// The exit status: 0, or 2 for a scenario that is not right.
int explain_command(const RunOptions& options);

// Of folders. The exit status: 0, 1 when a file cannot be read, 2 when a folder cannot.
int list_command(const std::vector<std::string>& folders);

}  // namespace roci::lab
