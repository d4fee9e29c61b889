// Traffic plan of a scenario: a list of flows with their start times, drawn from the seed before the run.
#pragma once

#include <cstdint>
#include <vector>

#include "lab/scenario/scenario.hpp"

namespace roci::lab {

// Flow of data between two hosts.
struct FlowPlan {
  static constexpr uint64_t kUnlimited = UINT64_MAX;

  uint32_t traffic = 0;  // index in the scenario's traffic
  uint32_t from = 0, to = 0;
  Nanos start{0};
  uint64_t bytes = 0;  // kUnlimited: until the traffic's `stop`
  Operation operation = Operation::kWrite;
};

// Pair of hosts of a closed loop, whose messages are drawn during the run.
struct LoopPlan {
  uint32_t traffic = 0;
  uint32_t from = 0, to = 0;
  uint64_t seed = 0;
};

struct TrafficPlan {
  std::vector<FlowPlan> flows;  // in order of start time
  std::vector<LoopPlan> loops;

  // Number of hosts that send or receive.
  [[nodiscard]] uint64_t busy_hosts() const;
};

// Fails if the plan would have more flows than memory permits.
Result<TrafficPlan> plan_traffic(const Scenario& scenario);

}  // namespace roci::lab
