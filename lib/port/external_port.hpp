// Ports that a program implements (roci/port.hpp): adapter to the interface of ports, and registered factories.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "port/dpdk/mbuf_pool.hpp"
#include "port/port.hpp"
#include "roci/port.hpp"

namespace roci {

// Fails if the MTU is not supported. `buffers` is kept as long as the port; it may be null.
Result<std::unique_ptr<Port>> adapt_port(std::unique_ptr<ExternalPort> port, std::string name,
                                         std::shared_ptr<MbufPool> buffers = nullptr);

// The factory with whose prefix `device` starts; empty if there is none.
PortFactory find_port_factory(std::string_view device);

}  // namespace roci
