// Congestion control of HPCC's ns-3 simulator as parameters of the project's algorithms, and the reverse.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "congestion/profile.hpp"
#include "lab/exchange/ns3_config.hpp"
#include "lab/exchange/ns3_topology.hpp"

namespace roci::lab {

struct Ns3Algorithm {
  std::string plugin;
  std::vector<std::pair<std::string, double>> parameters;
  std::vector<std::string> notes;  // settings that the algorithm does not have, one sentence each
};

// `longest` round trip of the topology; `path_mtu` of the lab's hosts.
Result<Ns3Algorithm> ns3_algorithm(const Ns3Settings& settings, const Ns3RoundTrip& longest,
                                   uint32_t path_mtu);

// Sets the mode and the keys of the algorithm. Fails if a parameter has a value that no key of the simulator gives.
Status set_ns3_algorithm(const Profile& profile, const Ns3RoundTrip& longest, uint32_t path_mtu,
                         Ns3Settings& settings);

}  // namespace roci::lab
