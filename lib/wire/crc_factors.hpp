// What bytes of a message are worth further on in its CRC-32 (Gopal et al., "Fast CRC Computation for Generic Polynomials
// Using PCLMULQDQ", 2009): 8 bytes may be taken away when their carry-less product with such a factor is added there.
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

// A power as a factor: shifted by one, which makes up for a carry-less product of reflected numbers being one bit short.
constexpr uint64_t crc_factor(uint32_t power) { return uint64_t{power} << 1; }

// Of the earlier and of the later 8 bytes of 16 that move by so many bits.
template <unsigned kBits>
constexpr uint64_t kEarlierFactor = crc_factor(power_of_x(kBits + 32));
template <unsigned kBits>
constexpr uint64_t kLaterFactor = crc_factor(power_of_x(kBits - 32));
static_assert(kEarlierFactor<512> == 0x154442bd4 &&
              kLaterFactor<512> == 0x1c6e41596);  // as the paper has them

}  // namespace roci
