// Sends a recorded exchange to a Rocinante host and compares its responses with the recorded ones, field by field.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "replay/differences.hpp"
#include "replay/recording.hpp"

namespace roci::test {

// Returns one line per deviation from the recording that is not in `differences`: a field of a response, an
// additional or missing response, a byte of memory, a received message. Also one line per unused entry of
// `differences` for this capture.
std::vector<std::string> replay(const Exchange& exchange, std::span<const Difference> differences);

// The same requests in the recorded bursts. There may be fewer acknowledgments. The final acknowledgment, memory and
// messages must be the same, except for the fields in `differences`.
std::vector<std::string> replay_in_bursts(const Exchange& exchange, std::span<const Difference> differences);

}  // namespace roci::test
