// Reads the hosts of a process: /roci/device/... (lib/device/monitoring/device_endpoints.hpp). A host with few queue
// pairs takes a handful of requests; one with 10,000 about 24 more, to find the busiest queue pairs.
#pragma once

#include "base/result.hpp"
#include "roci-top/readers/queue_pair_choice.hpp"
#include "roci-top/readers/snapshot.hpp"
#include "roci-top/readers/telemetry_client.hpp"

namespace roci::top {

// Fails if the process does not reply.
Status read_hosts(TelemetryClient& client, QueuePairChoice& choice, ProcessSample& seen);

}  // namespace roci::top
