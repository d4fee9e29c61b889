// The configuration file of roci-switch; config/switch-memif.yaml shows every key.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "port/port_config.hpp"
#include "switch/switch_config.hpp"

namespace roci {

struct SwitchFile {
  EalConfig eal;
  SwitchConfig sw;
  std::vector<EthdevConfig> devices;  // in the order of sw.ports
  IdlePolicy idle = IdlePolicy::kYield;
  std::optional<unsigned> core;
};

Result<SwitchFile> read_switch_file(const std::string& path);

}  // namespace roci
