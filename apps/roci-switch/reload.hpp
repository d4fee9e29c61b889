// Reload of a running switch's configuration. Changeable: marking and drop curves of the classes, and port faults if
// enabled. All other keys are fixed for the lifetime of the process.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "roci-switch/command_slot.hpp"
#include "roci-switch/switch_file.hpp"

namespace roci {

struct Reload {
  std::vector<std::pair<size_t, ClassConfigs>> marking;  // ports with changed curves
  std::vector<std::pair<size_t, PortFaults>> faults;     // ports with changed faults
  std::string summary;                                   // message that describes all changes
};

// Computes the changes from `running` to `wanted`. The error names the first key that cannot change.
Result<Reload> plan_reload(const SwitchFile& running, const SwitchFile& wanted);

// Objects that a reload changes. Both setters are called on the thread of the port's worker.
struct ReloadTarget {
  std::span<const std::unique_ptr<CommandSlot>> workers;
  std::function<size_t(size_t port)> worker_of;
  std::function<Status(size_t port, const ClassConfigs& classes)> configure_marking;
  std::function<void(size_t port, const PortFaults& faults)> set_faults;
};

// Changes the ports of each worker on the worker's thread, one port per round, so that the switch loses no frames for
// any number of ports. Stores the changed values in `running`. If a worker does not take its changes within `timeout`,
// the remaining workers are not changed, and the error names the changed ones.
Status apply_reload(const Reload& change, const ReloadTarget& target, SwitchFile& running, Nanos timeout);

}  // namespace roci
