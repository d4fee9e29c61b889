// Scheduler of the traffic classes of a port: strict classes first, the others by deficit round robin (Shreedhar and
// Varghese 1995), each with its share of the bytes. Unused shares, also of paused classes, go to the other classes.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "switch/qos/class_config.hpp"

namespace roci {

// Owned by one switch worker.
class Scheduler {
 public:
  explicit Scheduler(const ClassConfigs& classes);

  // Selects the class that sends next. `eligible`: bitmap of the classes that can send now, at least one. length(c):
  // bytes on the line of the first frame of class c. The caller must send this frame.
  template <class Length>
  uint8_t pick(uint8_t eligible, Length&& length);
  // Called when the class has no more frames: its deficit is not kept.
  void emptied(uint8_t traffic_class) { deficit_[traffic_class] = 0; }

 private:
  // Quantum of the class with the smallest weight. About one frame, so that shares are accurate over few frames.
  static constexpr uint64_t kSmallestQuantum = 2048;
  // Limit of the quantum of the class with the largest weight: bytes that a class sends in succession. The quanta of
  // the other classes are then smaller.
  static constexpr uint64_t kLargestQuantum = 8192;
  // Quanta and deficits are in parts of a byte, so that small quanta are accurate.
  static constexpr uint64_t kPerByte = 256;

  template <class Length>
  void skip_turns(uint8_t eligible, Length&& length);

  void next() {
    current_ = (current_ + 1U) % kTrafficClasses;
    granted_ = false;
  }

  uint8_t strict_ = 0;  // bitmap of the strict classes
  std::array<uint64_t, kTrafficClasses> quantum_{};
  std::array<uint64_t, kTrafficClasses> deficit_{};
  uint8_t current_ = 0;
  bool granted_ = false;  // the current class has received its quantum of this turn
};

template <class Length>
uint8_t Scheduler::pick(uint8_t eligible, Length&& length) {
  if (const unsigned first = eligible & strict_; first != 0)
    return static_cast<uint8_t>(31 - __builtin_clz(first));
  // Terminates: each iteration over all classes adds to the deficit of an eligible class.
  for (unsigned visited = 0;; ++visited) {
    if (visited == kTrafficClasses) [[unlikely]] {
      skip_turns(eligible, length);
      visited = 0;
    }
    if ((eligible >> current_ & 1U) != 0) {
      if (!granted_) {
        deficit_[current_] += quantum_[current_];
        granted_ = true;
      }
      const uint64_t needed = length(current_) * kPerByte;
      if (deficit_[current_] >= needed) {
        deficit_[current_] -= needed;
        return current_;
      }
    } else {
      deficit_[current_] = 0;  // not saved up while the class is paused
    }
    next();
  }
}

// After a turn of all classes without a frame: adds the quanta of the further turns in which no class can send, so that
// small quanta take no time.
template <class Length>
void Scheduler::skip_turns(uint8_t eligible, Length&& length) {
  uint64_t turns = UINT64_MAX;
  for (unsigned left = eligible; left != 0; left &= left - 1) {
    const auto c = static_cast<uint8_t>(__builtin_ctz(left));
    const uint64_t needed = length(c) * kPerByte;
    if (deficit_[c] >= needed) return;
    turns = std::min(turns, (needed - deficit_[c] - 1) / quantum_[c]);
  }
  for (unsigned left = eligible; left != 0; left &= left - 1) {
    const auto c = static_cast<uint8_t>(__builtin_ctz(left));
    deficit_[c] += turns * quantum_[c];
  }
}

}  // namespace roci
