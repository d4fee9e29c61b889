// Time-dependent faults: link outages and stalls of pollers.
#pragma once

#include <vector>

#include "base/rng.hpp"
#include "simulation/scenario/scenario.hpp"

namespace roci::test {

struct Outage {
  Nanos begin, end;
  size_t link = 0;
};
struct Stall {
  Nanos begin, end;
};

std::vector<Outage> draw_outages(const Scenario& scenario, Rng& rng);
// Stalls of one poller, sorted, without overlaps.
std::vector<Stall> draw_stalls(const Scenario& scenario, Rng& rng);

}  // namespace roci::test
