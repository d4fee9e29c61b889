// The sections of a scenario file, in the order in which they are read: each knows what those before it have said.
#pragma once

#include "lab/scenario.hpp"

namespace roci::lab {

// scenario_network.cpp.
Status read_topology(ConfigNode& root, Topology& topology);
Status read_hosts(ConfigNode& root, Scenario& scenario);
// Every switch is told the same; what depends on a port's rate is worked out for each rate that there is.
Status read_switches(ConfigNode& root, Scenario& scenario);

// A cable, and which of its ends stands first.
struct CableEnds {
  uint32_t cable = 0;
  bool first_is_a = true;
};

// scenario_ports.cpp.
Status read_between(ConfigNode& node, const Topology& topology, CableEnds& ends);  // the key `between`
Status read_ports(ConfigNode& root, Scenario& scenario);

// scenario_traffic.cpp.
Status read_traffic(ConfigNode& root, Scenario& scenario);
Status read_faults(ConfigNode& root, Scenario& scenario);

}  // namespace roci::lab
