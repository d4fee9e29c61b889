// Creation of a device from a configuration file, as in roci-perf. Part of the C++ API (roci/device.hpp).
#pragma once

#include <memory>
#include <string>

#include "roci/device.hpp"
#include "roci/result.hpp"

namespace roci {

// Starts DPDK, opens the port of the configuration file and creates a device. The file has a section `device` and
// optionally a section `eal`. config/perf-server.yaml is an example; config/perf-client.yaml describes every key. A
// memif client waits up to `connect_timeout` for its server, and every port as long for its link.
//
// DPDK starts once per process: a second device must have the same `eal` section, else EBUSY. In a program that has
// started DPDK itself, its own settings apply. If DPDK rejects the start, later calls fail with the same error. Any
// thread.
[[nodiscard]] Result<std::unique_ptr<Device>> open_device(const std::string& config_file);

// The same, from the text of a configuration file:
//   open_device_from_text("device: {port: {device: net_null0}, addresses: [10.0.0.1/24]}")
[[nodiscard]] Result<std::unique_ptr<Device>> open_device_from_text(const std::string& config);

}  // namespace roci
