// Export of a scenario as files of HPCC's ns-3 simulator. The importer gives an equal scenario for the files, except for
// the reported differences.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "lab/exchange/ns3_scenario_text.hpp"
#include "lab/scenario/scenario.hpp"

namespace roci::lab {

struct Ns3Export {
  std::vector<Ns3ListFile> files;  // configuration, topology, flows, list of traced nodes
  std::vector<std::string> notes;  // keys of the scenario that the files do not have, one sentence each
};

// Fails if the simulator cannot express the scenario. `name` of the configuration file, without its extension. Writes
// nothing.
Result<Ns3Export> export_ns3(const Scenario& scenario, const std::string& name);

// Numbers of the nodes of a topology in the simulator: those in their names (h0, h1, s2) if these are all numbers from
// 0 on, else hosts first.
struct Ns3NodeNumbers {
  std::vector<uint32_t> hosts, switches;
};
Ns3NodeNumbers ns3_node_numbers(const Topology& topology);

}  // namespace roci::lab
