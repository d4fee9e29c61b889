// Experiment of HPCC's ns-3 simulator as a scenario file of the lab, with equal parameters.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "lab/exchange/ns3_algorithm.hpp"
#include "lab/exchange/ns3_config.hpp"
#include "lab/exchange/ns3_flows.hpp"
#include "lab/exchange/ns3_topology.hpp"

namespace roci::lab {

struct Ns3Experiment {
  Ns3Settings settings;
  Ns3Topology topology;
  std::vector<Ns3Flow> flows;
  Ns3RoundTrip longest;
  Ns3Algorithm algorithm;
  std::string name, config_name;
  std::string list_stem;  // of the names of the lists of flows
  uint32_t path_mtu = 1024;
  Nanos origin{0};  // start of the traffic, in the time of the simulator
  Nanos duration{0}, settle{0}, drain{0};

  [[nodiscard]] std::set<uint8_t> priorities() const;
};

// Text of a file, and its name relative to the scenario file.
struct Ns3ListFile {
  std::string name, text;
};

// The path MTU whose ratio to the payload of a packet is nearest to 1.
uint32_t nearest_path_mtu(uint64_t payload);

Result<std::string> ns3_scenario_text(const Ns3Experiment& of);
// Part of the scenario without traffic and faults.
Result<std::string> ns3_network_text(const Ns3Experiment& of);
std::vector<Ns3ListFile> ns3_flow_lists(const Ns3Experiment& of);

}  // namespace roci::lab
