// Starting a network of this machine, and starting and ending its switch where it needs one.
//
// Whoever takes the network's switch lock starts the switch, which has the lock from then on for as long as it lives; whoever
// does not get it waits for the switch that another starts. So of several who start at the same time one does.
#pragma once

#include <filesystem>
#include <string>

#include "net/net_config.hpp"

namespace roci {

struct SwitchStart {
  NetConfig net;
  // Whether it has to be this network; otherwise one of its name that runs already will do.
  bool exactly = false;
  std::filesystem::path program;  // roci-switch
  Nanos timeout = 30s;
};

// Makes a network ready for programs: its folder and description, and its switch where it needs one. The folder of the network.
// Fails when one with another description runs and `exactly` is set.
Result<std::filesystem::path> ensure_net(const SwitchStart& start);

// Makes sure that the network's switch runs and is ready; the folder of the network. Fails with the switch's own words when it
// does not start, and when one with another description runs.
Result<std::filesystem::path> ensure_switch(const SwitchStart& start);

// Ends the switch; false when none runs. After `timeout` by force.
Result<bool> stop_switch(const std::filesystem::path& folder, Nanos timeout);

}  // namespace roci
