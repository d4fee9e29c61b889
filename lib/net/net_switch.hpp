// The switch of a network of this machine, as a configuration of roci-switch.
#pragma once

#include <filesystem>
#include <string>

#include "net/net_config.hpp"

namespace roci {

// Server ports of memif for the places, called place0, place1, …, and the uplink, in the folder of the network.
std::string net_switch_text(const NetConfig& net, const std::filesystem::path& folder);

// What its port is called.
std::string place_name(uint32_t place);

// The client's end of a place's port.
std::string place_port(const std::filesystem::path& folder, uint32_t place);

}  // namespace roci
