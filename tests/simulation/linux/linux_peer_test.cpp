// Seeds with Linux hosts (linux_host.hpp), slow hosts and small port queues. The environment variables of
// simulation_test.cpp apply.
#include <gtest/gtest.h>

#include "simulation/scenario/named_seeds.hpp"
#include "simulation/scenario/seeds.hpp"
#include "support/sanitizer.hpp"

namespace roci::test {
namespace {

constexpr uint64_t kLinuxSeeds = kSanitized ? 60 : 400;
constexpr uint64_t Tally::*kRequiredWithLinux[] = {
    &Tally::completed,       &Tally::gave_up_with_cause, &Tally::reconnected,    &Tally::drained,
    &Tally::window_accesses, &Tally::accesses_refused,   &Tally::limits_reached, &Tally::retransmitted,
    &Tally::frames_lost,     &Tally::handed_over,        &Tally::frames_kept};

TEST(LinuxPeer, random_programs_complete_with_linux_and_rocinante_peers) {
  run_seeds(kLinuxSeeds, draw_linux_scenario, kRequiredWithLinux);
}

TEST(LinuxPeer, seeds_that_found_a_defect_complete) {
  for (const NamedSeed& named : kNamedLinuxSeeds) {
    const SimulationResult result = run_simulation(named.seed, {}, draw_linux_scenario);
    EXPECT_EQ(result.failure, "") << named.found << "\n" << result.scenario << "\n" << result.counters;
    EXPECT_EQ(result.tally.gave_up, 0U) << named.found << "\n" << result.scenario;
  }
}

TEST(LinuxPeer, the_same_seed_sends_the_same_packets) {
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    const SimulationResult first = run_simulation(seed, {}, draw_linux_scenario);
    const SimulationResult second = run_simulation(seed, {}, draw_linux_scenario);
    EXPECT_EQ(first.digest, second.digest) << "seed " << seed;
    EXPECT_EQ(first.tally.completed, second.tally.completed);
  }
}

}  // namespace
}  // namespace roci::test
