// From a device in a configuration file to the device itself: what every program that is a host does in the same order.
#pragma once

#include <memory>
#include <string>

#include "device/device_config.hpp"

namespace roci {

// Starts DPDK, and opens the port with a pool for the frames that it receives, called `name`. Waits up to `link_timeout` for
// its link.
Result<std::unique_ptr<EthdevPort>> start_port(const EalConfig& eal, const EthdevConfig& port,
                                               const std::string& name, Nanos link_timeout);

// The same, and makes a device of the port. It waits for the link as long as for a memif server.
Result<std::unique_ptr<Device>> start_device(const EalConfig& eal, const DeviceFile& file);

}  // namespace roci
