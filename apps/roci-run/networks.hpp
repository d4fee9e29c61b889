// Listing and stopping of the networks of this machine.
#pragma once

#include <string>

#include "base/result.hpp"

namespace roci::run {

// A table of networks: switch process, used and total slots, addresses, and the process in each used slot.
Result<std::string> networks_table();
// Stops the switch of a network. Returns a message about the result.
Result<std::string> stop_network(const std::string& name);

}  // namespace roci::run
