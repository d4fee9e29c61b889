#include "simulation/scenario/timed_faults.hpp"

namespace roci::test {
namespace {

// Most traffic ends before this time.
constexpr uint64_t kHorizon = 30'000'000;  // ns

Nanos moment(Rng& rng, uint64_t low, uint64_t high) {
  return Nanos{static_cast<int64_t>(rng.between(low, high))};
}

}  // namespace

std::vector<Outage> draw_outages(const Scenario& scenario, Rng& rng) {
  std::vector<Outage> outages;
  const auto add = [&](uint64_t count, uint64_t shortest, uint64_t longest) {
    for (; count > 0; --count) {
      const Nanos begin = moment(rng, 0, kHorizon);
      outages.push_back({begin, begin + moment(rng, shortest, longest),
                         static_cast<size_t>(rng.below(scenario.hosts.size()))});
    }
  };
  if (scenario.bursts) add(rng.between(5, 50), 1'000, 200'000);
  if (scenario.outages) add(rng.between(1, 3), 1'000'000, 8'000'000);
  if (scenario.long_outages) add(1, 500'000'000, 2'000'000'000);
  return outages;
}

std::vector<Stall> draw_stalls(const Scenario& scenario, Rng& rng) {
  std::vector<Stall> stalls;
  if (!scenario.stalls) return stalls;
  Nanos at{0};
  for (uint64_t count = rng.between(1, 10); count > 0; --count) {
    const Nanos begin = at + moment(rng, 1'000, 5'000'000);
    at = begin + moment(rng, 1'000, rng.chance(0.8) ? 300'000 : 6'000'000);
    stalls.push_back({begin, at});
  }
  return stalls;
}

}  // namespace roci::test
