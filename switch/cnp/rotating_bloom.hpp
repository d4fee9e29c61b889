// Set of recent hashes in memory of fixed size: two Bloom filters; the newer one records. Every `period`, the
// older one is cleared and becomes the newer one. A hash is therefore remembered for one to two periods, and never
// longer. False positives: with n hashes in two periods, a fraction of about (4 n / 65,536)^4 of lookups; 1 in 70,000
// for 1,000 hashes.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>

#include "base/types.hpp"

namespace roci {

// Owned by one thread. Times before the current period count as its start.
class RotatingBloom {
 public:
  explicit RotatingBloom(Nanos period) : period_(period) {}

  // `hash`: 64 bits, all well mixed.
  [[nodiscard]] bool has(uint64_t hash, Nanos now) {
    turn(now);
    return has(filters_[0], hash) || has(filters_[1], hash);
  }
  void note(uint64_t hash, Nanos now) {
    turn(now);
    for (unsigned i = 0; i < kHashes; ++i) filters_[newer_].set(bit(hash, i));
  }

 private:
  static constexpr size_t kBits = 1U << 16;
  static constexpr unsigned kHashes = 4;  // of 16 bits each
  using Filter = std::bitset<kBits>;

  static size_t bit(uint64_t hash, unsigned i) { return hash >> 16 * i & (kBits - 1); }
  static bool has(const Filter& filter, uint64_t hash) {
    for (unsigned i = 0; i < kHashes; ++i) {
      if (!filter.test(bit(hash, i))) return false;
    }
    return true;
  }
  void turn(Nanos now) {
    const auto periods = (now - period_start_) / period_;
    if (periods <= 0) return;
    if (periods > 1) filters_[newer_].reset();
    newer_ ^= 1U;
    filters_[newer_].reset();
    period_start_ += periods * period_;
  }

  Nanos period_;
  Nanos period_start_{0};  // start of the newer filter's period
  unsigned newer_ = 0;
  std::array<Filter, 2> filters_{};
};

}  // namespace roci
