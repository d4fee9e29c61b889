// How a program gets its device: from a configuration file, as roci-perf does. Part of the C++ API (roci/device.hpp).
#pragma once

#include <memory>
#include <string>

#include "roci/device.hpp"
#include "roci/result.hpp"

namespace roci {

// Starts DPDK, opens the port that the file names and makes a device of it. The file has a section `device` and may have a
// section `eal`; config/perf-server.yaml is one, and config/perf-client.yaml has a comment to every key. A memif client waits
// up to `connect_timeout` for its server, any port as long for its link.
//
// DPDK starts once per process: a second device wants the same `eal` (else EBUSY), and a program that has started DPDK itself
// keeps its own settings. Any thread.
Result<std::unique_ptr<Device>> open_device(const std::string& config_file);

// The same from the text of such a file:
//   open_device_from_text("device: {port: {device: net_null0}, addresses: [10.0.0.1/24]}")
Result<std::unique_ptr<Device>> open_device_from_text(const std::string& config);

}  // namespace roci
