// Random traffic over a random network with random faults, derived from one seed, with oracles. Every work request
// completes exactly once, in order, with the right bytes. Nothing is written elsewhere, every buffer is returned, and
// the run ends. The same seed produces the same packets.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "simulation/scenario/scenario.hpp"
#include "simulation/verifier.hpp"

namespace roci::test {

struct SimulationResult {
  std::string failure;   // empty if no oracle failed, else one sentence
  std::string scenario;  // description for the report
  std::string counters;  // of the hosts, after a failure
  uint64_t digest = 0;   // of every frame on every link, in order
  Tally tally;
};

// `draw`: draws the scenario of the seed. `without`: features to remove, separated by commas (scenario.hpp).
using DrawScenario = Scenario (*)(uint64_t seed, std::string_view without);
SimulationResult run_simulation(uint64_t seed, std::string_view without = {},
                                DrawScenario draw = draw_scenario);

}  // namespace roci::test
