// What congestion control is doing with a flow, for people and for programs that show it.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace roci {

// One direction of a queue pair: its requests, or the READ responses that it sends. Counts are since it was connected.
struct CongestionFlowReport {
  uint32_t qp_num = 0;
  bool responses = false;   // else requests
  std::string profile;      // "none": nothing controls it, or nothing yet
  std::string algorithm;    // empty with "none"
  std::string state;        // of the algorithm, by its own name
  std::string last_reason;  // of the last event that changed something
  std::string last_event;   // what it stood for, such as "ack+rtt"
  double rate = -1;         // bit/s on the line; -1 without a limit
  double window = -1;       // bytes on the line; -1 without a limit
  uint64_t gap = 0;         // least time between two packets, ns
  uint64_t in_flight = 0;   // bytes on the line
  uint64_t rtt = 0;         // the latest sample, ns; 0 before the first
  uint64_t least_rtt = 0;   // of all
  uint64_t sent_bytes = 0;  // on the line, with what was sent again
  uint64_t sent_packets = 0;
  uint64_t acked_packets = 0;   // as far as the peer says so
  uint64_t marked_packets = 0;  // of these, that arrived with CE
  uint64_t cnps = 0;            // congestion notification packets that counted
  uint64_t notices = 0;         // CNMs
  uint64_t telemetry = 0;       // echoes and responses of switches
  uint64_t losses = 0;          // times the peer missed packets
  uint64_t timeouts = 0;
  uint64_t events = 0;                                   // that the algorithm was told of
  uint32_t state_bytes = 0;                              // of its state, with what the engine keeps beside it
  std::vector<std::pair<std::string, uint64_t>> states;  // ns that it has been in each, until the last event
  std::vector<std::pair<std::string, uint64_t>> reasons;  // how often each has changed something
};

}  // namespace roci
