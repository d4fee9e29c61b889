// Rate limiter for events (generic cell rate algorithm), with a burst of a tenth of a second's events.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/types.hpp"

namespace roci {

// Owned by one thread.
class RateLimit {
 public:
  // 0: no limit.
  explicit RateLimit(uint32_t per_second) : interval_(per_second == 0 ? 0 : 1'000'000'000 / per_second) {}

  bool allow(Nanos now) {
    if (next_ > now + kTolerance) return false;
    next_ = std::max(next_, now) + interval_;
    return true;
  }

 private:
  static constexpr Nanos kTolerance{100'000'000};
  Nanos interval_;
  Nanos next_{0};
};

}  // namespace roci
