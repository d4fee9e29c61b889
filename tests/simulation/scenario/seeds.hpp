// Runs of many seeds, in parallel, each simulation on one thread. ROCI_SEEDS=N runs N seeds instead of the default;
// ROCI_FIRST_SEED=S starts at S, so ROCI_FIRST_SEED=S ROCI_SEEDS=1 repeats one run. ROCI_WITHOUT=windows,ipv6 removes
// features from all of them. ROCI_CAPTURE=FILE writes the frames of a run of one seed as pcapng.
#pragma once

#include <cstdint>
#include <span>

#include "simulation/simulation.hpp"

namespace roci::test {

// Reports every failure to GoogleTest, and prints the totals. With at least the default number of seeds and all
// features, each total of `required` must be greater than zero: otherwise the scenarios no longer reach that behavior.
void run_seeds(uint64_t default_count, DrawScenario draw, std::span<uint64_t Tally::*const> required);

}  // namespace roci::test
