// CRC-32 of a short byte sequence as a sum. Each piece is multiplied by a factor for its distance from the end of the
// sequence, and the products are added. No piece depends on the previous one. A piece can be read from a register or
// from application memory instead of the frame to which it was just written.
//
// The functions require carry-less products. The caller checks has_carryless_product().
#pragma once

#include <array>
#include <cstdint>
#include <cstring>

#include "base/os/guarded_access.hpp"
#include "base/vector16.hpp"
#include "wire/icrc/crc_factors.hpp"

namespace roci {

// Maximum distance from the start of a 16-byte piece to the end of the sequence.
inline constexpr uint32_t kMaxCrcSum = 640;

namespace crc_sum {

struct alignas(16) Factors {
  uint64_t of_earlier, of_later;  // of the first and the second 8 bytes
};
// Indexed by the number of bytes after the piece.
inline constexpr auto kFactors = [] {
  std::array<Factors, kMaxCrcSum - 15> table{};
  uint32_t later = power_of_x_before(32), earlier = power_of_x(32);
  for (Factors& entry : table) {
    entry = {crc_factor(earlier), crc_factor(later)};
    later = times_x_to_the_8(later);
    earlier = times_x_to_the_8(earlier);
  }
  return table;
}();
// Values of the paper (crc_factors.hpp).
static_assert(kFactors[16].of_earlier == 0x1751997d0 && kFactors[16].of_later == 0x0ccaa009e);

}  // namespace crc_sum

// Returns the contribution of 16 bytes to a sum if `behind` bytes of the sequence follow them.
ROCI_CARRYLESS inline Vector16 crc_piece(Vector16 bytes, uint32_t behind) {
  const Vector16 factors = load_16_aligned(&crc_sum::kFactors[behind]);
  return xor_of(product_of_lows(bytes, factors), product_of_highs(bytes, factors));
}

// Shorter pieces are at the end of a 16-byte piece that starts with zeros.
ROCI_CARRYLESS inline Vector16 crc_piece_of_8(uint64_t bytes, uint32_t behind) {
  return crc_piece(vector_of(0, bytes), behind);
}
ROCI_CARRYLESS inline Vector16 crc_piece_of_4(uint32_t bytes, uint32_t behind) {
  return crc_piece_of_8(uint64_t{bytes} << 32, behind);
}

namespace crc_sum {

// Without copies, the source is memory of this stack. With copies, source or destination is application memory, which
// may be unmapped, so the accesses are guarded.
enum class Copies : uint8_t { kNo, kYes };

template <Copies kCopies>
ROCI_CARRYLESS inline Vector16 add_pieces(Vector16 sum, uint8_t* to, const uint8_t* from, uint32_t length,
                                          uint32_t behind) {
  const auto moved = [&to](const uint8_t* source, auto& value) {
    if constexpr (kCopies == Copies::kNo) {
      static_cast<void>(to);
      std::memcpy(&value, source, sizeof value);
    } else {
      guarded_load(source, value);
      guarded_store(to, value);
      to += sizeof value;
    }
  };
  behind += length;
  for (; length >= 16; length -= 16, from += 16) {
    Vector16 bytes;
    moved(from, bytes);
    behind -= 16;
    sum = xor_of(sum, crc_piece(bytes, behind));
  }
  if ((length & 8) != 0) {
    uint64_t bytes = 0;
    moved(from, bytes);
    from += 8;
    behind -= 8;
    sum = xor_of(sum, crc_piece_of_8(bytes, behind));
  }
  if ((length & 4) != 0) {
    uint32_t bytes = 0;
    moved(from, bytes);
    from += 4;
    behind -= 4;
    sum = xor_of(sum, crc_piece_of_4(bytes, behind));
  }
  for (length &= 3; length > 0; --length, ++from) {
    uint8_t byte = 0;
    moved(from, byte);
    --behind;
    sum = xor_of(sum, crc_piece_of_4(uint32_t{byte} << 24, behind));
  }
  return sum;
}

}  // namespace crc_sum

// Adds `length` bytes of memory, which end `behind` bytes before the end of the sequence.
ROCI_CARRYLESS inline Vector16 crc_pieces(Vector16 sum, const uint8_t* from, uint32_t length,
                                          uint32_t behind) {
  return crc_sum::add_pieces<crc_sum::Copies::kNo>(sum, nullptr, from, length, behind);
}
// As crc_pieces(), and copies the bytes to `to` with guarded accesses (base/os/guarded_access.hpp).
ROCI_CARRYLESS inline Vector16 copy_crc_pieces(Vector16 sum, uint8_t* to, const uint8_t* from,
                                               uint32_t length, uint32_t behind) {
  return crc_sum::add_pieces<crc_sum::Copies::kYes>(sum, to, from, length, behind);
}

// Returns the CRC register after the sequence, in the form of icrc_continue(). The sequence starts with an empty
// register.
ROCI_CARRYLESS inline uint32_t crc_of_sum(Vector16 sum) {
  // Reduction from 128 bits to 96, to 64, and by Barrett reduction to 32 (figure 12 of the paper). The CRC is the
  // remainder of the sequence followed by 32 zero bits.
  constexpr uint64_t kQuotient = 0x1f7011641, kDivisor = uint64_t{kCrcPolynomial} << 1 | 1;
  const Vector16 first_half = vector_of(crc_factor(power_of_x(96)), crc_factor(power_of_x(64)));
  const Vector16 barrett = vector_of(kQuotient, kDivisor);
  const Vector16 low = vector_of(0xffffffff, 0);
  sum = xor_of(shifted_down<8>(sum), product_of_lows(sum, first_half));
  sum = xor_of(shifted_down<4>(sum), product_of_low_and_high(and_of(sum, low), first_half));
  Vector16 quotient = product_of_lows(and_of(sum, low), barrett);
  quotient = product_of_low_and_high(and_of(quotient, low), barrett);
  return ~second_32_bits(xor_of(sum, quotient));
}

}  // namespace roci
