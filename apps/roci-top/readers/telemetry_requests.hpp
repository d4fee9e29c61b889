// Requests that are common to all object types.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "roci-top/readers/snapshot.hpp"
#include "roci-top/readers/telemetry_client.hpp"

namespace roci::top {

// Reads a list of names; in pages if `paged`.
Result<std::vector<std::string>> read_names(TelemetryClient& client, const std::string& command, bool paged);
// Reads the numbers and texts of a map.
Status read_counted(TelemetryClient& client, const std::string& command, Counted& counted);

}  // namespace roci::top
