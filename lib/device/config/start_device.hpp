// Start of a device from its configuration: EAL, port and device. Used by all programs that are a host.
#pragma once

#include <memory>
#include <string>

#include "device/config/device_config.hpp"

namespace roci {

// Starts DPDK and opens the port, with a receive buffer pool `name`. Waits up to `link_timeout` for the link.
Result<std::unique_ptr<EthdevPort>> start_port(const EalConfig& eal, const EthdevConfig& port,
                                               const std::string& name, Nanos link_timeout);

// The same, and creates a device on the port. The link time-out is the port's connect_timeout.
Result<std::unique_ptr<Device>> start_device(const EalConfig& eal, const DeviceFile& file);

}  // namespace roci
