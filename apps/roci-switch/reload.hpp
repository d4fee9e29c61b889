// What may change while a switch runs: how its classes mark and drop, and the faults of its ports where they are enabled.
// Everything else in a configuration file holds from the start to the end of the process.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "roci-switch/switch_file.hpp"

namespace roci {

struct Reload {
  std::vector<std::pair<size_t, ClassConfigs>> marking;  // ports whose curves change
  std::vector<std::pair<size_t, PortFaults>> faults;     // ports whose faults change
  std::string said;                                      // all of it, for people
};

// What leads from the one to the other; an error that names the first key that cannot change.
Result<Reload> plan_reload(const SwitchFile& running, const SwitchFile& wanted);

}  // namespace roci
