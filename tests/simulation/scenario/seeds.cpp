#include "simulation/scenario/seeds.hpp"

#include <gtest/gtest.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace roci::test {
namespace {

uint64_t from_environment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

}  // namespace

void run_seeds(uint64_t default_count, DrawScenario draw, std::span<uint64_t Tally::*const> required) {
  const uint64_t seeds = from_environment("ROCI_SEEDS", default_count);
  const uint64_t first = from_environment("ROCI_FIRST_SEED", 1);
  const char* text = std::getenv("ROCI_WITHOUT");
  const std::string without = text == nullptr ? "" : text;
  std::vector<SimulationResult> results(seeds);
  std::atomic<uint32_t> failures{0};
  // Stops after a few failures.
  tbb::parallel_for(uint64_t{0}, seeds, [&](uint64_t i) {
    if (failures.load() >= 8) return;
    results[i] = run_simulation(first + i, without, draw);
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
  if (seeds < default_count || !without.empty() || failures.load() > 0) return;
  for (const Sum& sum : kSums) {
    if (std::ranges::find(required, sum.value) != required.end()) {
      EXPECT_GT(total.*sum.value, 0U) << sum.name;
    }
  }
  EXPECT_GE(total.messages_arrived, total.messages_lost);
}

}  // namespace roci::test
