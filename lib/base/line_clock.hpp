// When a line of a given rate is free again. Keeps the fraction of a nanosecond, so a thousand frames back to
// back take as long as their bits say and not up to a microsecond longer.
#pragma once

#include <cstdint>

#include "base/types.hpp"

namespace roci {

// What an Ethernet frame occupies on a line besides the bytes an mbuf holds: preamble and start delimiter 8,
// frame check sequence 4, least gap 12 (IEEE 802.3 clause 4).
inline constexpr Bytes kEthernetLineOverhead{24};

class LineClock {
 public:
  // A rate of zero is an infinitely fast line.
  explicit LineClock(BitsPerSec rate = BitsPerSec{0}) : rate_(rate) {}

  // The line has finished all it was given by then: a whole nanosecond, rounded up.
  [[nodiscard]] Nanos free_at() const { return free_ + Nanos{fraction_ != 0 ? 1 : 0}; }
  [[nodiscard]] BitsPerSec rate() const { return rate_; }
  // For what is sent from now on.
  void set_rate(BitsPerSec rate) {
    free_ = free_at();
    fraction_ = 0;
    rate_ = rate;
  }

  // Puts `bytes` on the line as soon as it is free; gives the time, rounded up, when the last bit has left.
  // Whoever sends at free_at() is taken to have waited for the line, and starts at the fraction.
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
  uint64_t fraction_ = 0;  // free after free_ + fraction_ / rate_ nanoseconds
};

}  // namespace roci
