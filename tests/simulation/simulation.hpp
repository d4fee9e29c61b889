// Random traffic over a random network with random faults, all from one seed, with oracles in memory: every work
// request completes exactly once, in order, with the right bytes, nothing is written where it must not be, every
// buffer comes back, and it ends. The same seed does the same thing, packet for packet.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "simulation/judge.hpp"

namespace roci::test {

struct SimulationResult {
  std::string failure;   // empty when the oracles are content; else one sentence
  std::string scenario;  // what the seed made, for people
  std::string counters;  // of the hosts, after a failure
  uint64_t digest = 0;   // of every frame on every link, in order
  Tally tally;
};

// `without`: features that are taken away, separated by commas (scenario.hpp).
SimulationResult run_simulation(uint64_t seed, std::string_view without = {});

}  // namespace roci::test
