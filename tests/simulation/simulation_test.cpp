// ROCI_SEEDS=N runs N seeds instead of the default; ROCI_FIRST_SEED=S starts at S, so that ROCI_FIRST_SEED=S ROCI_SEEDS=1
// replays one. Seeds run in parallel, each simulation on one thread.
#include "simulation/simulation.hpp"

#include <gtest/gtest.h>
#include <tbb/parallel_for.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

namespace roci::test {
namespace {

uint64_t from_environment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

TEST(Simulation, random_traffic_over_faulty_networks_loses_nothing) {
  const uint64_t seeds = from_environment("ROCI_SEEDS", 1000);
  const uint64_t first = from_environment("ROCI_FIRST_SEED", 1);
  std::vector<SimulationResult> results(seeds);
  tbb::parallel_for(uint64_t{0}, seeds, [&](uint64_t i) { results[i] = run_simulation(first + i); });
  SimulationResult total;
  for (uint64_t i = 0; i < seeds; ++i) {
    const SimulationResult& result = results[i];
    ASSERT_EQ(result.failure, "") << "seed " << first + i << " (" << result.scenario
                                  << "); replay it with ROCI_SEEDS=1 ROCI_FIRST_SEED=" << first + i;
    total.completed += result.completed;
    total.retries_exceeded += result.retries_exceeded;
    total.retransmitted += result.retransmitted;
    total.frames_lost += result.frames_lost;
  }
  std::printf(
      "seeds %lu, requests completed %lu, frames lost %lu, packets retransmitted %lu, queue pairs that gave "
      "up %lu\n",
      seeds, total.completed, total.frames_lost, total.retransmitted, total.retries_exceeded);
  // Seven losses in a row do happen in a thousand networks that lose a tenth, but not often.
  EXPECT_LE(total.retries_exceeded * 200, seeds + 200);
}

TEST(Simulation, the_same_seed_does_the_same_thing_packet_for_packet) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    const SimulationResult first = run_simulation(seed);
    const SimulationResult second = run_simulation(seed);
    EXPECT_EQ(first.digest, second.digest) << "seed " << seed;
    EXPECT_EQ(first.completed, second.completed);
    EXPECT_EQ(first.retransmitted, second.retransmitted);
    EXPECT_NE(first.digest, run_simulation(seed + 1000).digest);
  }
}

}  // namespace
}  // namespace roci::test
