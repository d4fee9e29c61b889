// Bandwidth: as many messages outstanding as --tx-depth allows, on all queue pairs.
#pragma once

#include "roci-perf/control.hpp"
#include "roci-perf/progress_line.hpp"
#include "roci-perf/traffic.hpp"

namespace roci::perf {

struct BandwidthResult {
  uint64_t size = 0;
  uint64_t messages = 0;    // measured, over all queue pairs
  double seconds = 0;       // the measured time
  double peak = 0;          // bits per second
  double average = 0;       // bits per second
  double message_rate = 0;  // per second
};

// The side that posts. When it returns, all its messages have completed and `verified` are right.
Result<BandwidthResult> run_bandwidth(Control& control, Endpoint& endpoint, const Parameters& parameters,
                                      const Options& options, ProgressLine& progress, Traffic& traffic);
// The Traffic that run_bandwidth() wants.
Traffic bandwidth_traffic(Endpoint& endpoint, const Parameters& parameters, const Options& options);

// The other side, before the first message may come: receives posted, what is READ filled.
Status prepare_to_serve_bandwidth(Endpoint& endpoint, const Parameters& parameters, Traffic& traffic);
// Until the client is done; returns its last message, which has its result.
Result<Json> serve_bandwidth(Control& control, Endpoint& endpoint, const Parameters& parameters,
                             Traffic& traffic);
// For a peer set up by hand: serves for the duration of the test.
Status serve_silently(Control& control, Endpoint& endpoint, const Parameters& parameters, Traffic& traffic);

}  // namespace roci::perf
