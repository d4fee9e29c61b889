#include "switch/qos/scheduler.hpp"

#include <algorithm>

namespace roci {

Scheduler::Scheduler(const ClassConfigs& classes) {
  uint64_t smallest = UINT64_MAX;
  for (const ClassConfig& config : classes) {
    if (!config.strict) smallest = std::min<uint64_t>(smallest, config.weight);
  }
  for (uint8_t c = 0; c < kTrafficClasses; ++c) {
    if (classes[c].strict) {
      strict_ = static_cast<uint8_t>(strict_ | 1U << c);
    } else {
      quantum_[c] = kSmallestQuantum * classes[c].weight / smallest;
    }
  }
}

}  // namespace roci
