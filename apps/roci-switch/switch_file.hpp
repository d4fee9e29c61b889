// The configuration file of roci-switch. config/switch-memif.yaml contains every key.
#pragma once

#include <string>
#include <vector>

#include "port/port_config.hpp"
#include "switch/switch_config.hpp"

namespace roci {

// Fault injection, for tests and the lab. Disabled unless it is enabled once for all ports.
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
  std::vector<PortFaults> faults;  // in the order of sw.ports; no faults without `injection`
  IdlePolicy idle = IdlePolicy::kYield;
  Nanos awake{0};  // with IdlePolicy::kSleep: time of polling after the last frame before sleeping
  // folder of the network with the memory of ports "shmN"; empty: no such ports
  std::string shared_memory;
  std::vector<unsigned> cores;  // CPUs of the workers; empty: not bound
  std::string crash_notices;    // folder with crash notifications of processes at the ports; empty: none

  friend bool operator==(const SwitchFile&, const SwitchFile&) = default;
};

// The slot number in a device name: "shm0" to "shm31". Nothing for other devices.
std::optional<uint32_t> shm_slot_of(const EthdevConfig& device);

Result<SwitchFile> read_switch_file(const std::string& path);

// Number of buffers that the switch can hold at once: in full queues and rings of all ports, in rings between workers,
// in queues of shapers, waiting for a neighbor, delayed by faults, and a reserve for generated frames and bursts.
uint64_t required_buffers(const SwitchFile& file);

// Error for faults of a port when they are not enabled.
inline constexpr const char* kFaultsNotEnabled =
    "fault injection requires 'faults: {enabled: true}' of the switch";

}  // namespace roci
