// Configuration of roci-switch for a network of this machine.
#pragma once

#include <filesystem>
#include <string>

#include "net/net_config.hpp"

namespace roci {

// Writes a configuration with a port for each slot, named slot0, slot1, …, and the uplink. `folder`: of the network.
std::string net_switch_text(const NetConfig& net, const std::filesystem::path& folder);

// Name of a slot and of its switch port.
std::string slot_name(uint32_t slot);

}  // namespace roci
