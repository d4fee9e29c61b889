// ROCI_SEEDS=N runs N seeds instead of the default; ROCI_FIRST_SEED=S starts at S, so ROCI_FIRST_SEED=S ROCI_SEEDS=1
// repeats one run. ROCI_WITHOUT=windows,ipv6 removes features from all of them. ROCI_CAPTURE=FILE writes the frames
// of a run of one seed as pcapng. Seeds run in parallel, each simulation on one thread.
#include "simulation/simulation.hpp"

#include <gtest/gtest.h>
#include <tbb/parallel_for.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "simulation/named_seeds.hpp"

namespace roci::test {
namespace {

uint64_t from_environment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

// With a sanitizer each seed takes several times as long.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr uint64_t kSeeds = 150;
#else
constexpr uint64_t kSeeds = 1000;
#endif

TEST(Simulation, random_traffic_over_faulty_networks_loses_nothing) {
  const uint64_t seeds = from_environment("ROCI_SEEDS", kSeeds);
  const uint64_t first = from_environment("ROCI_FIRST_SEED", 1);
  const char* text = std::getenv("ROCI_WITHOUT");
  const std::string without = text == nullptr ? "" : text;
  std::vector<SimulationResult> results(seeds);
  std::atomic<uint32_t> failures{0};
  // Stops after a few failures.
  tbb::parallel_for(uint64_t{0}, seeds, [&](uint64_t i) {
    if (failures.load() >= 8) return;
    results[i] = run_simulation(first + i, without);
    if (!results[i].failure.empty()) ++failures;
  });
  Tally total;
  for (uint64_t i = 0; i < seeds; ++i) {
    EXPECT_EQ(results[i].failure, "")
        << results[i].scenario << "\n"
        << results[i].counters << "\nreplay it with ROCI_SEEDS=1 ROCI_FIRST_SEED=" << first + i;
    total.add(results[i].tally);
    if (results[i].tally.gave_up > 0)
      std::printf("gave up by bad luck: %s\n%s\n", results[i].scenario.c_str(), results[i].counters.c_str());
  }
  std::printf("seeds %lu", seeds);
  for (const Sum& sum : kSums) std::printf(", %s %lu", sum.name, total.*sum.value);
  std::printf("\n");
  // Seven consecutive losses are rare even at a loss rate of 10 %.
  EXPECT_LE(total.gave_up * 500, seeds + 500);
}

TEST(Simulation, seeds_that_have_found_something_stay_quiet) {
  for (const NamedSeed& named : kNamedSeeds) {
    const SimulationResult result = run_simulation(named.seed);
    EXPECT_EQ(result.failure, "") << named.found << "\n" << result.scenario << "\n" << result.counters;
    EXPECT_EQ(result.tally.gave_up, 0U) << named.found << "\n" << result.scenario;
  }
}

TEST(Simulation, the_same_seed_does_the_same_thing_packet_for_packet) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    const SimulationResult first = run_simulation(seed);
    const SimulationResult second = run_simulation(seed);
    EXPECT_EQ(first.digest, second.digest) << "seed " << seed;
    EXPECT_EQ(first.tally.completed, second.tally.completed);
    EXPECT_EQ(first.tally.retransmitted, second.tally.retransmitted);
    EXPECT_NE(first.digest, run_simulation(seed + 1000).digest);
  }
}

}  // namespace
}  // namespace roci::test
