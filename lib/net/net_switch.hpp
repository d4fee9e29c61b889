// The switch of a network of this machine, as a configuration of roci-switch.
#pragma once

#include <filesystem>
#include <string>

#include "net/net_config.hpp"

namespace roci {

// Ports to the places, called place0, place1, …, and the uplink. `folder`: of the network.
std::string net_switch_text(const NetConfig& net, const std::filesystem::path& folder);

// What its port is called.
std::string place_name(uint32_t place);

}  // namespace roci
