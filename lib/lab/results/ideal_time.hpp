// Minimum times of an otherwise idle network.
#pragma once

#include "lab/scenario/scenario.hpp"
#include "lab/traffic/flow_plan.hpp"

namespace roci::lab {

// Time of a full packet and its acknowledgment between two hosts.
Nanos base_rtt(const Scenario& scenario, uint32_t from, uint32_t to);

// Duration of a flow in ns: its packets back to back on the slowest cable of the path, until the last acknowledgment. 0
// for an unlimited flow.
double ideal_time(const Scenario& scenario, const FlowPlan& flow);

}  // namespace roci::lab
