// The bandwidth test: up to --tx-depth outstanding messages on each queue pair.
#pragma once

#include "roci-perf/connection/control.hpp"
#include "roci-perf/measurement/traffic.hpp"
#include "roci-perf/output/progress_line.hpp"

namespace roci::perf {

struct BandwidthResult {
  uint64_t size = 0;
  uint64_t messages = 0;    // measured messages of all queue pairs
  double seconds = 0;       // measured time
  double peak = 0;          // bits/s
  double average = 0;       // bits/s
  double message_rate = 0;  // messages/s
};

// The posting side. On return, all its messages have completed. With --verify, WRITEs and READs are checked; SENDs are
// checked by the serving side.
Result<BandwidthResult> run_bandwidth(Control& control, Endpoint& endpoint, const Parameters& parameters,
                                      const Options& options, ProgressLine& progress, Traffic& traffic);
// The Traffic object for run_bandwidth().
Traffic bandwidth_traffic(Endpoint& endpoint, const Parameters& parameters, const Options& options);

// Prepares the serving side before the first message: posts receives, fills the memory for READ.
Status prepare_to_serve_bandwidth(Endpoint& endpoint, const Parameters& parameters, Traffic& traffic);
// Serves until the client has finished. Returns the client's last message, which contains its result.
Result<Json> serve_bandwidth(Control& control, Endpoint& endpoint, const Parameters& parameters,
                             Traffic& traffic);
// Serves for the duration of the test; for a peer given by --peer.
Status serve_one_sided(Control& control, Endpoint& endpoint, const Parameters& parameters, Traffic& traffic);

}  // namespace roci::perf
