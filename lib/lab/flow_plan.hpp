// What a scenario's traffic comes down to: a list of flows, each with its beginning, drawn from the seed before anything runs.
#pragma once

#include <cstdint>
#include <vector>

#include "lab/scenario.hpp"

namespace roci::lab {

// One flow of data from host to host.
struct FlowPlan {
  static constexpr uint64_t kUnlimited = UINT64_MAX;

  uint32_t traffic = 0;  // which of the scenario's
  uint32_t from = 0, to = 0;
  Nanos start{0};
  uint64_t bytes = 0;  // kUnlimited: until the traffic's `stop`
  Operation operation = Operation::kWrite;
};

// A pair of hosts of a closed loop, which draws its messages while it runs.
struct LoopPlan {
  uint32_t traffic = 0;
  uint32_t from = 0, to = 0;
  uint64_t seed = 0;
};

struct TrafficPlan {
  std::vector<FlowPlan> flows;  // in the order of their beginnings
  std::vector<LoopPlan> loops;
};

// Fails when there would be more flows than memory is for.
Result<TrafficPlan> plan_traffic(const Scenario& scenario);

}  // namespace roci::lab
