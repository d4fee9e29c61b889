// What comes and goes with time: links that are dead for a while, pollers that nobody polls.
#pragma once

#include <vector>

#include "base/rng.hpp"
#include "simulation/scenario.hpp"

namespace roci::test {

struct Outage {
  Nanos begin, end;
  size_t link = 0;
};
struct Stall {
  Nanos begin, end;
};

std::vector<Outage> draw_outages(const Scenario& scenario, Rng& rng);
// Of one poller; in order, not overlapping.
std::vector<Stall> draw_stalls(const Scenario& scenario, Rng& rng);

}  // namespace roci::test
