// roci-lab export: writes the files of HPCC's ns-3 simulator for a run of a scenario file.
#pragma once

#include <string>

#include "roci-lab/jobs.hpp"

namespace roci::lab {

// Returns the exit status: 0, or 2 if the scenario is invalid or cannot be expressed, or a file cannot be written.
// `options` must select one run. Prints the keys that are not exported to stderr.
int export_command(const RunOptions& options, const std::string& folder);

}  // namespace roci::lab
