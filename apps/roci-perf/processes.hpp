// One host of its own on a port from a configuration file or in a network of this machine; the other one is another process or another stack.
#pragma once

#include <memory>
#include <string>

#include "device/device_config.hpp"
#include "net/net_place.hpp"
#include "roci-perf/report.hpp"

namespace roci::perf {

// What --config says, or the place in a network of this machine.
struct HostConfig {
  EalConfig eal;
  DeviceFile host;
  std::unique_ptr<NetPlace> place{};  // null with --config
};
// In the network with this folder, which roci-run names.
Result<HostConfig> take_place(const std::string& folder);
Result<HostConfig> read_host_config(const std::string& file);

// A failure together with the exit status it stands for.
struct Outcome {
  Status status;
  int exit_code = 0;
};
Outcome run_on_port(const Options& options, const HostConfig& config, Report& report);

}  // namespace roci::perf
