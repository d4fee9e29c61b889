// Factors for CRC-32 by folding (Gopal et al., "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ", 2009). 8
// bytes of a message can be replaced by their carry-less product with a factor, which is added at a later position.
// Polynomials are reflected: the lowest power is the highest bit.
#pragma once

#include <cstdint>

namespace roci {

inline constexpr uint32_t kCrcPolynomial = 0xedb88320;

// x^n modulo the polynomial.
constexpr uint32_t power_of_x(unsigned n) {
  uint32_t value = 0x80000000;  // x^0
  for (; n > 0; --n) value = (value >> 1) ^ ((value & 1) != 0 ? kCrcPolynomial : 0);
  return value;
}
// x^-n.
constexpr uint32_t power_of_x_before(unsigned n) {
  uint32_t value = 0x80000000;
  for (; n > 0; --n) value = (value & 0x80000000) != 0 ? (value ^ kCrcPolynomial) << 1 | 1 : value << 1;
  return value;
}
constexpr uint32_t times_x_to_the_8(uint32_t value) {
  for (unsigned n = 8; n > 0; --n) value = (value >> 1) ^ ((value & 1) != 0 ? kCrcPolynomial : 0);
  return value;
}

// Converts a power to a factor. The shift by one compensates that a carry-less product of reflected numbers is one bit
// short.
constexpr uint64_t crc_factor(uint32_t power) { return uint64_t{power} << 1; }

// Factors for the earlier and the later 8 bytes of 16 that are moved by kBits.
template <unsigned kBits>
constexpr uint64_t kEarlierFactor = crc_factor(power_of_x(kBits + 32));
template <unsigned kBits>
constexpr uint64_t kLaterFactor = crc_factor(power_of_x(kBits - 32));
static_assert(kEarlierFactor<512> == 0x154442bd4 &&
              // Values of the paper.
              kLaterFactor<512> == 0x1c6e41596);

}  // namespace roci
