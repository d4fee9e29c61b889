// The configuration file of roci-switch; config/switch-memif.yaml shows every key.
#pragma once

#include <string>
#include <vector>

#include "port/port_config.hpp"
#include "switch/switch_config.hpp"

namespace roci {

// Faults are a feature of the lab: a switch has none, and takes none, unless it is told so once for all ports.
struct FaultInjection {
  bool enabled = false;
  uint64_t seed = 1;

  friend bool operator==(const FaultInjection&, const FaultInjection&) = default;
};

struct SwitchFile {
  EalConfig eal;
  SwitchConfig sw;
  std::vector<EthdevConfig> devices;  // in the order of sw.ports
  FaultInjection injection;
  std::vector<PortFaults> faults;  // in the order of sw.ports; without `injection` none of them has any
  IdlePolicy idle = IdlePolicy::kYield;
  Nanos awake{0};  // how long `sleep` only polls after the last frame
  std::string
      shared_memory;  // the folder of the network whose memory ports "shmN" are in; empty: there is no such port
  std::vector<unsigned> cores;  // of the workers; empty: wherever the system puts them
  std::string last_words;  // the folder where processes at memif ports leave some; empty: none is looked for

  friend bool operator==(const SwitchFile&, const SwitchFile&) = default;
};

// The slot that a port's device names: "shm0" to "shm31". Nothing for another kind of device.
std::optional<uint32_t> shm_slot_of(const EthdevConfig& device);

Result<SwitchFile> read_switch_file(const std::string& path);

// What is said instead of injecting faults into a port when they are not enabled.
inline constexpr const char* kFaultsNotEnabled =
    "fault injection requires 'faults: {enabled: true}' of the switch";

}  // namespace roci
