// Report of the congestion control state of a flow, for display and monitoring.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace roci {

// One direction of a queue pair: its requests, or the READ responses that it sends. Counts start at the connection.
struct CongestionFlowReport {
  uint32_t qp_num = 0;
  bool responses = false;   // false: requests
  std::string profile;      // "none": no algorithm runs (yet)
  std::string algorithm;    // empty for "none"
  std::string state;        // the algorithm's name of its state
  std::string last_reason;  // of the last event that changed the decision
  std::string last_event;   // kinds of the last event, such as "ack+rtt"
  double rate = -1;         // bit/s on the line; -1: no limit
  double window = -1;       // bytes on the line; -1: no limit
  uint64_t gap = 0;         // minimum time between two packets, ns
  uint64_t in_flight = 0;   // payload bytes
  uint64_t rtt = 0;         // latest sample, ns; 0 before the first
  uint64_t least_rtt = 0;   // minimum of all samples, ns
  uint64_t sent_bytes = 0;  // on the line, retransmissions included
  uint64_t sent_packets = 0;
  uint64_t acked_packets = 0;   // as reported by the peer
  uint64_t marked_packets = 0;  // of these: arrived with CE
  uint64_t cnps = 0;            // accepted CNPs
  uint64_t cnms = 0;            // CNMs
  uint64_t telemetry = 0;       // INT echoes and INT responses of switches
  uint64_t losses = 0;          // reports of missing packets by the peer
  uint64_t timeouts = 0;
  uint64_t events = 0;       // passed to the algorithm
  uint32_t state_bytes = 0;  // size of the algorithm's state and the engine's data of the flow
  std::vector<std::pair<std::string, uint64_t>> states;   // ns in each state, until the last event
  std::vector<std::pair<std::string, uint64_t>> reasons;  // number of changes for each reason
};

}  // namespace roci
