// Start and stop of a network of this machine, and of its switch if it requires one.
//
// The process that takes the network's switch lock starts the switch, which holds the lock until it exits. Other
// processes wait until that switch is ready. So only one of several concurrent processes starts a switch.
#pragma once

#include <filesystem>
#include <string>

#include "net/net_config.hpp"

namespace roci {

struct SwitchStart {
  NetConfig net;
  // True: the network must have this description. False: a running network of this name is accepted.
  bool exactly = false;
  std::filesystem::path program;  // roci-switch
  Nanos timeout = 30s;
};

// Prepares a network: creates its folder and description, and starts its switch if it requires one. Returns the folder
// of the network. Fails if `exactly` is set and a network with another description is in use.
Result<std::filesystem::path> ensure_net(const SwitchStart& start);

// Ensures that the switch of the network runs and is ready. Returns the folder of the network. Fails with the last
// message of the switch if it does not start. Also fails if `exactly` is set and the running network has another
// description.
Result<std::filesystem::path> ensure_switch(const SwitchStart& start);

// Stops the switch, by SIGKILL after `timeout`. Returns false if no switch runs.
Result<bool> stop_switch(const std::filesystem::path& folder, Nanos timeout);

}  // namespace roci
