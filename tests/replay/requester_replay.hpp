// Runs Rocinante's requester with a recorded exchange: it gets the work requests of the recorded requester at the
// times of the capture, and the recorded responses. Its packets, completions and buffers are compared with the
// recording.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "replay/recording.hpp"
#include "replay/requester_differences.hpp"

namespace roci::test {

struct RequesterTables {
  std::span<const RequestDifference> differences;
  std::span<const RequestHabit> habits;
};
inline RequesterTables known_requester_tables() { return {request_differences(), request_habits()}; }

// Returns one line per deviation from the recording that is not in the tables, and one per unneeded entry of the
// tables for this capture.
std::vector<std::string> replay_to_requester(const Exchange& exchange, const RequesterTables& tables);

// "RC_WRITE_MIDDLE 1001".
std::string request_line(const Packet& packet);

}  // namespace roci::test
