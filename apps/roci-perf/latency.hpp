// Latency: one message at a time. WRITE and SEND play ping-pong and count half of each round trip; a READ is one
// round trip by nature and counts whole.
#pragma once

#include "roci-perf/control.hpp"
#include "roci-perf/progress_line.hpp"
#include "roci-perf/statistics.hpp"
#include "roci-perf/traffic.hpp"

namespace roci::perf {

// The Traffic that both sides of a latency test want.
Traffic latency_traffic(Endpoint& endpoint, const Parameters& parameters);
// Both sides, before the first message may come.
Status prepare_for_latency(Endpoint& endpoint, const Parameters& parameters, Traffic& traffic);

// The side that begins. All its messages have completed when it returns.
Result<LatencySamples> run_latency(Control& control, Endpoint& endpoint, const Parameters& parameters,
                                   ProgressLine& progress, Traffic& traffic);
// The other side, until the client is done or, without a control channel, the duration is over; returns the
// client's last message.
Result<Json> serve_latency(Control& control, Endpoint& endpoint, const Parameters& parameters,
                           Traffic& traffic);

}  // namespace roci::perf
