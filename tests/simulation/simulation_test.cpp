// Seeds with Rocinante hosts only; seeds.hpp describes the environment variables.
#include "simulation/simulation.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "roci/cc.h"

#include "simulation/scenario/named_seeds.hpp"
#include "simulation/scenario/seeds.hpp"
#include "support/sanitizer.hpp"

namespace roci::test {
namespace {

constexpr uint64_t kSeeds = kSanitized ? 150 : 1000;
constexpr uint64_t Tally::*kRequired[] = {
    &Tally::completed,      &Tally::messages_arrived, &Tally::gave_up_with_cause, &Tally::reconnected,
    &Tally::drained,        &Tally::window_accesses,  &Tally::accesses_refused,   &Tally::refusals_due,
    &Tally::limits_reached, &Tally::retransmitted,    &Tally::frames_lost,        &Tally::handed_over,
    &Tally::frames_kept};

TEST(Simulation, scenarios_have_all_algorithms) {
  std::set<std::string> missing;
  for (const roci_cc_plugin* const* each = roci_cc_plugins(); *each != nullptr; ++each)
    missing.insert((*each)->name);
  for (uint64_t seed = 1; seed <= 1000; ++seed) {
    for (const HostTraits& host : draw_scenario(seed, "").hosts) {
      for (const auto& [name, profile] : host.control.profiles) missing.erase(profile.algorithm);
    }
  }
  EXPECT_EQ(missing, std::set<std::string>{});
}

TEST(Simulation, random_traffic_over_faulty_networks_completes) {
  run_seeds(kSeeds, draw_scenario, kRequired);
}

TEST(Simulation, seeds_that_found_a_defect_complete) {
  for (const NamedSeed& named : kNamedSeeds) {
    const SimulationResult result = run_simulation(named.seed);
    EXPECT_EQ(result.failure, "") << named.found << "\n" << result.scenario << "\n" << result.counters;
    EXPECT_EQ(result.tally.gave_up, 0U) << named.found << "\n" << result.scenario;
  }
}

TEST(Simulation, the_same_seed_sends_the_same_packets) {
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
