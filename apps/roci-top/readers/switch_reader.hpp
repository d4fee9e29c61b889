// Reads the switches of a process: /roci/switch/... (roci-switch/endpoints.hpp).
#pragma once

#include "base/result.hpp"
#include "roci-top/readers/snapshot.hpp"
#include "roci-top/readers/telemetry_client.hpp"

namespace roci::top {

// Fails if the process does not reply.
Status read_switches(TelemetryClient& client, ProcessSample& seen);

}  // namespace roci::top
