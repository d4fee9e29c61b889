// Random traffic over a random network with random faults, all from one seed, with an oracle in memory: every work
// request completes exactly once, in order, with the right bytes, nothing is written where it must not be, every
// buffer comes back, and it ends. The same seed does the same thing, packet for packet.
#pragma once

#include <cstdint>
#include <string>

namespace roci::test {

struct SimulationResult {
  std::string failure;            // empty when the oracle is content; else one sentence
  std::string scenario;           // what the seed made, for people
  uint64_t digest = 0;            // of every frame on every link, in order
  uint64_t completed = 0;         // work requests that succeeded
  uint64_t retries_exceeded = 0;  // queue pairs that gave up, as they may after retry_cnt losses in a row
  uint64_t retransmitted = 0;     // packets
  uint64_t frames_lost = 0;       // by the links
};

SimulationResult run_simulation(uint64_t seed);

}  // namespace roci::test
