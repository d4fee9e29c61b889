// Reload of a running switch's configuration. Changeable: marking and drop curves of the classes, and port faults if
// enabled. All other keys are fixed for the lifetime of the process.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "roci-switch/switch_file.hpp"

namespace roci {

struct Reload {
  std::vector<std::pair<size_t, ClassConfigs>> marking;  // ports with changed curves
  std::vector<std::pair<size_t, PortFaults>> faults;     // ports with changed faults
  std::string summary;                                   // message that describes all changes
};

// Computes the changes from `running` to `wanted`. The error names the first key that cannot change.
Result<Reload> plan_reload(const SwitchFile& running, const SwitchFile& wanted);

}  // namespace roci
