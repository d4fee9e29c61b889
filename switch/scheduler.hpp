// Which traffic class sends next: strict ones first, the others in turn by deficit round robin (Shreedhar and Varghese
// 1995), each with its share of the bytes. What a class does not use the others have.
#pragma once

#include <array>
#include <cstdint>

#include "switch/class_config.hpp"

namespace roci {

// Owned by the switch's thread.
class Scheduler {
 public:
  explicit Scheduler(const ClassConfigs& classes);

  // `eligible`: a bit for each class that could send now, at least one. length(c) is what the first frame of class c
  // occupies on the line. The class that is returned sends it.
  template <class Length>
  uint8_t pick(uint8_t eligible, Length&& length);
  // The class has nothing more to send, and saves nothing up for later.
  void emptied(uint8_t traffic_class) { deficit_[traffic_class] = 0; }

 private:
  // Of the class with the smallest weight. About a frame: shares are then right over few frames.
  static constexpr uint64_t kSmallestQuantum = 2048;

  void next() {
    current_ = (current_ + 1U) % kTrafficClasses;
    granted_ = false;
  }

  uint8_t strict_ = 0;  // a bit for each
  std::array<uint64_t, kTrafficClasses> quantum_{};
  std::array<uint64_t, kTrafficClasses> deficit_{};
  uint8_t current_ = 0;
  bool granted_ = false;  // the current class has had its quantum of this turn
};

template <class Length>
uint8_t Scheduler::pick(uint8_t eligible, Length&& length) {
  if (const unsigned first = eligible & strict_; first != 0)
    return static_cast<uint8_t>(31 - __builtin_clz(first));
  // Ends: each round adds to the deficit of a class that is eligible.
  while (true) {
    if ((eligible >> current_ & 1U) != 0) {
      if (!granted_) {
        deficit_[current_] += quantum_[current_];
        granted_ = true;
      }
      const uint64_t bytes = length(current_);
      if (deficit_[current_] >= bytes) {
        deficit_[current_] -= bytes;
        return current_;
      }
    }
    next();
  }
}

}  // namespace roci
