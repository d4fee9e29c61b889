#include "switch/qos/scheduler.hpp"

#include <algorithm>

namespace roci {

Scheduler::Scheduler(const ClassConfigs& classes) {
  uint64_t smallest = UINT64_MAX, largest = 0;
  for (const ClassConfig& config : classes) {
    if (config.strict) continue;
    smallest = std::min<uint64_t>(smallest, config.weight);
    largest = std::max<uint64_t>(largest, config.weight);
  }
  // The smallest weight may be the default of a class without traffic, so it must not make the other quanta large.
  const bool is_bounded = kSmallestQuantum * largest > kLargestQuantum * smallest;
  const uint64_t quantum = is_bounded ? kLargestQuantum : kSmallestQuantum;
  const uint64_t unit = is_bounded ? largest : smallest;
  for (uint8_t c = 0; c < kTrafficClasses; ++c) {
    if (classes[c].strict) {
      strict_ = static_cast<uint8_t>(strict_ | 1U << c);
    } else {
      quantum_[c] = quantum * kPerByte * classes[c].weight / unit;
    }
  }
}

}  // namespace roci
