// Whether something has happened of late, in memory of a fixed size: two Bloom filters that take turns. What is noted goes
// into the newer one; each `period` the older one is emptied and becomes the newer one. So what was noted is remembered
// for one to two periods, and nothing is ever remembered for longer. It may believe that it remembers what never was:
// with n notes in two periods about (4 n / 65,536)^4 of the questions, 1 in 70,000 at 1,000 notes.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>

#include "base/types.hpp"

namespace roci {

// Owned by one thread. Time must not go back.
class RotatingBloom {
 public:
  explicit RotatingBloom(Nanos period) : period_(period) {}

  // `hash`: 64 bits that are all well mixed.
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
    const auto periods = (now - began_) / period_;
    if (periods == 0) return;
    if (periods > 1) filters_[newer_].reset();
    newer_ ^= 1U;
    filters_[newer_].reset();
    began_ += periods * period_;
  }

  Nanos period_;
  Nanos began_{0};  // of the newer one's turn
  unsigned newer_ = 0;
  std::array<Filter, 2> filters_{};
};

}  // namespace roci
