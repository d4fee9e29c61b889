// Before the traffic: hosts learn each other's addresses and what the others understand, so that none of it is measured.
#pragma once

#include "lab/flow_plan.hpp"
#include "lab/network.hpp"
#include "lab/window_runner.hpp"

namespace roci::lab {

// Who has many to talk to meets them a few at a time, on queue pairs of their own: all at once their questions and its answers
// would crowd each other out, and be asked again when the traffic has begun. Does nothing where nobody has many.
Status introduce(Network& network, WindowRunner& runner, const TrafficPlan& plan);

// Until the peers of all queue pairs that there are have said what they understand, and know it of us. Fails when some have not
// after 2 s.
Status wait_until_known(Network& network, WindowRunner& runner);

}  // namespace roci::lab
