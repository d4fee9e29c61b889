// Replay protection for signed self-defined CNMs (l3_congestion_notification.hpp). The sequence of a CNM is its time of
// transmission in ticks since 1970, modulo 2^32, and increases with each CNM of a congestion point.
//
// The receiver rejects a replayed CNM: first because it has accepted a later one of the same congestion point,
// afterwards because the CNM is too old. Sender and receiver need a common key, and clocks that agree within the
// tolerance.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/types.hpp"
#include "wire/cnm/congestion_notification.hpp"

namespace roci {

inline constexpr Nanos kL3CnmTick = 10us;  // 2^32 ticks are 11.9 hours

inline constexpr uint32_t kMaxSignedCnms = static_cast<uint32_t>(1s / kL3CnmTick);  // per second

constexpr uint32_t l3_cnm_ticks(Nanos time_of_day) {
  return static_cast<uint32_t>(static_cast<uint64_t>(time_of_day / kL3CnmTick));
}

// Sequence of a sender. Never repeats a value if it sends at most one CNM per tick on average.
class L3CnmSequence {
 public:
  uint32_t next(Nanos time_of_day) {
    last_ = std::max(last_ + 1, static_cast<uint64_t>(time_of_day / kL3CnmTick));
    return static_cast<uint32_t>(last_);
  }

 private:
  uint64_t last_ = 0;
};

// Validates sequences at a receiver. Owned by one thread. The table is bounded and set-associative. When all slots of a
// set belong to congestion points with recent CNMs, CNMs of further points in the set are rejected.
class L3CnmGuard {
 public:
  enum class Verdict : uint8_t {
    kNew,
    kRepeated,  // or older than an accepted one of the same congestion point
    kTooOld,    // or from the future: the clock of the sender is ahead
    kFull,      // no free slot for a new congestion point
  };
  static constexpr Nanos kMaxTolerance = 1h;

  // `points`: capacity, rounded up to a power of two. `tolerance`: maximum of clock difference plus transit time.
  L3CnmGuard(uint32_t points, Nanos tolerance, uint64_t salt);

  Verdict take(const CongestionPointId& point, uint32_t sequence, Nanos time_of_day);

 private:
  static constexpr size_t kWays = 8;
  struct Slot {
    CongestionPointId point{};
    uint32_t sequence = 0;
    Nanos until{0};  // end of validity: older CNMs are then rejected as too old
  };

  Nanos tolerance_;
  uint64_t salt_;
  std::vector<Slot> slots_;  // sets of kWays
};

}  // namespace roci
