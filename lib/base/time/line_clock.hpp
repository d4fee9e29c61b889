// Clock of a transmission line: the time at which a line of a given rate becomes free. It keeps fractions of a
// nanosecond, so a thousand frames back to back take the time of their bits, not up to a microsecond more.
#pragma once

#include <cstdint>

#include "base/types.hpp"

namespace roci {

// Bytes that an Ethernet frame occupies on the line in addition to the bytes of the mbuf: preamble and start delimiter
// 8, frame check sequence 4, minimum gap 12 (IEEE 802.3 clause 4).
inline constexpr Bytes kEthernetLineOverhead{24};

// Line with a rate. Owned by one thread.
class LineClock {
 public:
  // Rate 0: no transmission time.
  explicit LineClock(BitsPerSec rate = BitsPerSec{0}) : rate_(rate) {}

  // Time at which everything passed to occupy() has left, rounded up to a whole nanosecond.
  [[nodiscard]] Nanos free_at() const { return free_ + Nanos{fraction_ != 0 ? 1 : 0}; }
  [[nodiscard]] BitsPerSec rate() const { return rate_; }
  // Applies to later transmissions.
  void set_rate(BitsPerSec rate) {
    free_ = free_at();
    fraction_ = 0;
    rate_ = rate;
  }

  // Transmits `bytes` as soon as the line is free; returns the time when the last bit has left, rounded up. A sender at
  // free_at() counts as waiting for the line and starts at the fraction.
  Nanos occupy(Nanos now, Bytes bytes) {
    if (now > free_at()) {
      free_ = now;
      fraction_ = 0;
    }
    if (rate_.value() == 0) return free_at();
    __extension__ using Wide = unsigned __int128;
    const Wide bits_nanos = static_cast<Wide>(bytes.value()) * 8 * 1'000'000'000 + fraction_;
    free_ += Nanos{static_cast<int64_t>(bits_nanos / rate_.value())};
    fraction_ = static_cast<uint64_t>(bits_nanos % rate_.value());
    return free_at();
  }

 private:
  BitsPerSec rate_;
  Nanos free_{0};
  uint64_t fraction_ = 0;  // the line is free after free_ + fraction_ / rate_ ns
};

}  // namespace roci
