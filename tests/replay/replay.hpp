// Feeds a recorded exchange to a host of ours and compares its answers with the recorded ones, field by field.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "replay/differences.hpp"
#include "replay/recording.hpp"

namespace roci::test {

// One line for each thing that is not as recorded and not in `differences`: a field of an answer, an answer too many
// or missing, a byte of memory, a message received; and for each entry of `differences` for this capture that nothing
// needed. Empty when all is well.
std::vector<std::string> replay(const Exchange& exchange, std::span<const Difference> differences);

// The same requests in the bursts in which they were recorded. Acknowledgements may then be fewer; what they say in the
// end, memory and messages may not differ, but for the fields in `differences`.
std::vector<std::string> replay_in_bursts(const Exchange& exchange, std::span<const Difference> differences);

}  // namespace roci::test
