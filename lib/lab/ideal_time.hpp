// How long things take in a network that does nothing else.
#pragma once

#include "lab/flow_plan.hpp"
#include "lab/scenario.hpp"

namespace roci::lab {

// Of a full packet and its acknowledgement between two hosts.
Nanos base_rtt(const Scenario& scenario, uint32_t from, uint32_t to);

// Of a flow, in ns: its packets one behind the other on the slowest cable of its way, until the last is acknowledged. 0 of one
// without end.
double ideal_time(const Scenario& scenario, const FlowPlan& flow);

}  // namespace roci::lab
