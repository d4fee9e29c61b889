// Tests with one host in this process, on a port from a configuration file or in a network of this machine. The peer is
// another process or another RDMA implementation.
#pragma once

#include <memory>
#include <string>

#include "device/config/device_config.hpp"
#include "net/net_slot.hpp"
#include "roci-perf/output/report.hpp"

namespace roci::perf {

// The configuration from --config, or the slot in a network of this machine.
struct HostConfig {
  EalConfig eal;
  DeviceFile host;
  std::unique_ptr<NetSlot> slot{};  // null with --config
};
// Allocates a slot in the network with this folder, which roci-run sets in ROCI_NET.
Result<HostConfig> take_slot(const std::string& folder);
Result<HostConfig> read_host_config(const std::string& file);

// A failure with its exit status.
struct Outcome {
  Status status;
  int exit_code = 0;
};
Outcome run_on_port(const Options& options, const HostConfig& config, Report& report);

}  // namespace roci::perf
