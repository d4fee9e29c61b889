// The latency test: one message at a time. WRITE and SEND are ping-pong and report half of each round trip; READ
// reports the whole round trip.
#pragma once

#include "roci-perf/connection/control.hpp"
#include "roci-perf/measurement/statistics.hpp"
#include "roci-perf/measurement/traffic.hpp"
#include "roci-perf/output/progress_line.hpp"

namespace roci::perf {

// The Traffic object for both sides of a latency test.
Traffic latency_traffic(Endpoint& endpoint, const Parameters& parameters);
// Prepares either side before the first message.
Status prepare_for_latency(Endpoint& endpoint, const Parameters& parameters, Traffic& traffic);

// The side that starts. On return all its messages have completed.
Result<LatencySamples> run_latency(Control& control, Endpoint& endpoint, const Parameters& parameters,
                                   ProgressLine& progress, Traffic& traffic);
// The serving side. Ends when the client has finished or, without a control channel, after the duration. Returns the
// client's last message.
Result<Json> serve_latency(Control& control, Endpoint& endpoint, const Parameters& parameters,
                           Traffic& traffic);

}  // namespace roci::perf
