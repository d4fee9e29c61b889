// roci-lab import: writes a scenario file for an experiment of HPCC's ns-3 simulator.
#pragma once

#include "lab/exchange/ns3_import.hpp"

namespace roci::lab {

// Returns the exit status: 0, or 2 if a file is invalid or cannot be written. Prints the settings that were not
// translated to stderr.
int import_command(Ns3ImportOptions options);

}  // namespace roci::lab
