// Topology file of HPCC's ns-3 simulator:
//
//   18 1 17                          nodes, switches, links
//   17                               numbers of the switches
//   0 17 100Gbps 1000ns 0.000000     a link: two nodes, rate, delay, probability of a lost packet
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/types.hpp"

namespace roci::lab {

struct Ns3Link {
  uint32_t a = 0, b = 0;  // nodes
  BitsPerSec rate{0};
  Nanos delay{0};
  double loss = 0;
};

struct Ns3Topology {
  std::vector<bool> is_switch;     // by node
  std::vector<uint32_t> switches;  // in the order of the file
  std::vector<Ns3Link> links;
  size_t ignored_words = 0;  // after the last link

  [[nodiscard]] uint32_t nodes() const { return static_cast<uint32_t>(is_switch.size()); }
  // Name of a node in scenarios: h3, s17.
  [[nodiscard]] std::string name_of(uint32_t node) const {
    return (is_switch[node] ? "s" : "h") + std::to_string(node);
  }
  // Rate of the first host's link, which the simulator considers the rate of all hosts.
  [[nodiscard]] BitsPerSec host_rate() const;
};

// `name` of the file, for errors. Fails unless each host has exactly one link, to a switch, and two switches have at
// most one.
Result<Ns3Topology> parse_ns3_topology(std::string_view text, const std::string& name);
std::string format_ns3_topology(const Ns3Topology& topology);

// The longest base round trip of two hosts and the largest bandwidth-delay product (bytes), as the simulator computes
// them: delays in both directions, and the payload of a packet on each link of one direction.
struct Ns3RoundTrip {
  Nanos rtt{0};
  uint64_t bdp = 0;
};
Ns3RoundTrip longest_ns3_round_trip(const Ns3Topology& topology, uint64_t payload);

}  // namespace roci::lab
