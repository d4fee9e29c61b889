// Creation of devices on any kind of port, for the programs and tests of the project. The public Device::create() takes
// ports that a program implements.
#pragma once

#include <memory>

#include "port/dpdk/mbuf_pool.hpp"
#include "port/port.hpp"
#include "roci/device.hpp"

namespace roci {

// Fails on an invalid address, on a port whose MTU cannot carry a path MTU of 256, and if the buffers cannot be allocated.
// With `buffers`, a shared pool whose buffers hold a frame of the port's MTU, config.tx_buffers is ignored.
[[nodiscard]] Result<std::unique_ptr<Device>> create_device(std::unique_ptr<Port> port,
                                                            const DeviceConfig& config,
                                                            std::shared_ptr<MbufPool> buffers = nullptr);

}  // namespace roci
