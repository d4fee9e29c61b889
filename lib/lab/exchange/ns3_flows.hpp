// Flow file of HPCC's ns-3 simulator:
//
//   693                              number of flows
//   12 10 3 100 402988 2.080049729   sender, receiver, priority, destination port, bytes, start in seconds
//
// The simulator reads the specified number of flows and ignores the rest of the file. Its descendants (ConWeave) omit
// the destination port.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/types.hpp"
#include "lab/exchange/ns3_topology.hpp"

namespace roci::lab {

inline constexpr uint16_t kNs3Port = 100;             // destination port of flows without one
inline constexpr uint64_t kMaxNs3Bytes = UINT32_MAX;  // of a flow

struct Ns3Flow {
  uint32_t from = 0, to = 0;  // nodes
  uint8_t priority = 3;
  uint16_t port = kNs3Port;
  uint64_t bytes = 0;
  Nanos start{0};
};

struct Ns3Flows {
  std::vector<Ns3Flow> flows;
  size_t ignored_words = 0;  // after the last flow
};

// `name` of the file, for errors. The flows must be between hosts of `topology`.
Result<Ns3Flows> parse_ns3_flows(std::string_view text, const std::string& name, const Ns3Topology& topology);
std::string format_ns3_flows(const std::vector<Ns3Flow>& flows);

}  // namespace roci::lab
