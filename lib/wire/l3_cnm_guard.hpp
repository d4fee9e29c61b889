// Whether a signed self-defined CNM (l3_congestion_notification.hpp) is a new one. Its sequence is the time at which it was sent, in
// ticks since 1970 modulo 2^32, and rises with each message of a congestion point. So one that was recorded is refused: at
// first because its point has said something since, later because it is too old. Nothing has to be agreed on but a key and,
// within the tolerance, the time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/types.hpp"
#include "wire/congestion_notification.hpp"

namespace roci {

inline constexpr Nanos kL3CnmTick = 10us;  // 2^32 of them are 11.9 hours

inline constexpr uint32_t kMostSignedCnms = static_cast<uint32_t>(1s / kL3CnmTick);  // a second

constexpr uint32_t l3_cnm_ticks(Nanos time_of_day) {
  return static_cast<uint32_t>(static_cast<uint64_t>(time_of_day / kL3CnmTick));
}

// Of who signs: never the same twice, as long as there are no more than one a tick on average.
class L3CnmSequence {
 public:
  uint32_t next(Nanos time_of_day) {
    last_ = std::max(last_ + 1, static_cast<uint64_t>(time_of_day / kL3CnmTick));
    return static_cast<uint32_t>(last_);
  }

 private:
  uint64_t last_ = 0;
};

// Of who verifies. Owned by one thread. Bounded: when it knows as many points as it can, all heard of within the tolerance,
// it refuses new ones.
class L3CnmGuard {
 public:
  enum class Verdict : uint8_t {
    kNew,
    kRepeated,  // or overtaken by a later one of its point
    kTooOld,    // or from a clock that is ahead
    kFull,
  };
  static constexpr Nanos kMostTolerance = 1h;

  // `points`: that it can know, rounded up to a power of two; `tolerance`: between clocks, and on the way.
  L3CnmGuard(uint32_t points, Nanos tolerance, uint64_t salt);

  Verdict take(const CongestionPointId& point, uint32_t sequence, Nanos time_of_day);

 private:
  static constexpr size_t kWays = 8;
  struct Slot {
    CongestionPointId point{};
    uint32_t sequence = 0;
    Nanos until{0};  // then anything that it could refuse is too old anyway
  };

  Nanos tolerance_;
  uint64_t salt_;
  std::vector<Slot> slots_;  // sets of kWays
};

}  // namespace roci
