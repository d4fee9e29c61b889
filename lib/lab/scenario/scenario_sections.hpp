// Readers of the sections of a scenario file, in calling order: each uses the results of the preceding ones.
#pragma once

#include "lab/scenario/scenario.hpp"

namespace roci::lab {

// In scenario_network.cpp.
Status read_topology(ConfigNode& root, Topology& topology);
Status read_hosts(ConfigNode& root, Scenario& scenario);
// All switches have the same configuration. Values that depend on a port's rate are computed for each rate.
Status read_switches(ConfigNode& root, Scenario& scenario);

// Cable, and which of its ends the file names first.
struct CableEnds {
  uint32_t cable = 0;
  bool first_is_a = true;
};

// In scenario_ports.cpp.
Status read_between(ConfigNode& node, const Topology& topology, CableEnds& ends);  // the key `between`
Status read_ports(ConfigNode& root, Scenario& scenario);

// In scenario_traffic.cpp.
Status read_traffic(ConfigNode& root, Scenario& scenario);
Status read_faults(ConfigNode& root, Scenario& scenario);

}  // namespace roci::lab
