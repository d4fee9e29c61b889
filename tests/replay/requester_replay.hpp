// Drives our requester from a recorded exchange: it is given the work that the recorded requester had, at the times of
// the capture, and the recorded responses; what it sends, its completions and its buffers are compared with the recording.
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

// One line for each thing that is not as recorded and not in the tables, and for each entry of the tables for this
// capture that is not needed. Empty when all is well.
std::vector<std::string> replay_to_requester(const Exchange& exchange, const RequesterTables& tables);

// "RC_WRITE_MIDDLE 1001".
std::string request_line(const Packet& packet);

}  // namespace roci::test
