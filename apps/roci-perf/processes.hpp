// One host of its own on a port from a configuration file; the other one is another process or another stack.
#pragma once

#include "device/device_config.hpp"
#include "roci-perf/report.hpp"

namespace roci::perf {

// What --config says.
struct HostConfig {
  EalConfig eal;
  DeviceFile host;
};
Result<HostConfig> read_host_config(const std::string& file);

// A failure together with the exit status it stands for.
struct Outcome {
  Status status;
  int exit_code = 0;
};
Outcome run_on_port(const Options& options, const HostConfig& config, Report& report);

}  // namespace roci::perf
