// Warm-up before the traffic: hosts resolve addresses and exchange capabilities, so that this is not measured.
#pragma once

#include "lab/execution/window_runner.hpp"
#include "lab/network/network.hpp"
#include "lab/traffic/flow_plan.hpp"

namespace roci::lab {

// Hosts with many peers exchange capabilities with a few at a time, on temporary queue pairs. All at once, requests and
// responses would be delayed by congestion, and repeated during the traffic. Does nothing if no host has many peers.
Status warm_up_addresses(Network& network, WindowRunner& runner, const TrafficPlan& plan);

// Runs until the capability exchange of all existing queue pairs is complete. Fails if it takes more than 2 s.
Status wait_until_known(Network& network, WindowRunner& runner);

}  // namespace roci::lab
