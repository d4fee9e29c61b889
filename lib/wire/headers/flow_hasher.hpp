// Non-cryptographic hash of flows, for hash tables and for the choice among equal-cost paths. Words are mixed in one by
// one. An attacker must not know the salt, otherwise it can construct collisions.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace roci {

class FlowHasher {
 public:
  explicit constexpr FlowHasher(uint64_t salt) : value_(salt) {}

  constexpr void add(uint64_t word) {
    value_ = (value_ ^ word) * 0x9e3779b97f4a7c15;  // 2^64 / golden ratio: spreads into the top bits
    value_ ^= value_ >> 32;
  }
  constexpr void add(const std::array<uint8_t, 16>& address) {
    const auto words = std::bit_cast<std::array<uint64_t, 2>>(address);
    add(words[0]);
    add(words[1]);
  }
  [[nodiscard]] constexpr uint64_t value() const { return value_; }

 private:
  uint64_t value_;
};

}  // namespace roci
