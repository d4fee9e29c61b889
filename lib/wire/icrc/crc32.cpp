#include "wire/icrc/crc32.hpp"

#include <array>
#include <cstring>

#include "wire/icrc/crc_factors.hpp"
#include "wire/icrc/crc_sum.hpp"

namespace roci {
namespace {

// kBytesBefore[n][b]: register after the byte b and n bytes of zeros.
constexpr auto kBytesBefore = [] {
  std::array<std::array<uint32_t, 256>, 8> table{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    table[0][byte] = times_x_to_the_8(byte);
    for (size_t zeros = 1; zeros < table.size(); ++zeros)
      table[zeros][byte] = times_x_to_the_8(table[zeros - 1][byte]);
  }
  return table;
}();

// The register, without the inversions at the start and the end. Eight bytes at a time.
uint32_t through_tables(uint32_t value, const uint8_t* data, size_t length) {
  for (; length >= 8; data += 8, length -= 8) {
    uint64_t bytes = 0;
    std::memcpy(&bytes, data, sizeof bytes);
    bytes ^= value;
    value = 0;
    for (size_t i = 0; i < 8; ++i) value ^= kBytesBefore[7 - i][(bytes >> (8 * i)) & 0xff];
  }
  for (; length > 0; ++data, --length) value = (value >> 8) ^ kBytesBefore[0][(value ^ *data) & 0xff];
  return value;
}

constexpr size_t kLane = 16, kLanes = 4, kFold = kLane * kLanes;

// Moves 16 bytes by kBits towards the end of the message.
template <unsigned kBits>
ROCI_CARRYLESS Vector16 moved(Vector16 bytes) {
  const Vector16 factors = vector_of(kEarlierFactor<kBits>, kLaterFactor<kBits>);
  return xor_of(product_of_lows(bytes, factors), product_of_highs(bytes, factors));
}

// Requires at least kFold bytes.
ROCI_CARRYLESS uint32_t by_folding(uint32_t value, const uint8_t* data, size_t length) {
  Vector16 lanes[kLanes];
  for (size_t i = 0; i < kLanes; ++i) lanes[i] = load_16(data + i * kLane);
  lanes[0] = xor_of(lanes[0], vector_of(value, 0));
  for (data += kFold, length -= kFold; length >= kFold; data += kFold, length -= kFold) {
    for (size_t i = 0; i < kLanes; ++i)
      lanes[i] = xor_of(moved<8 * kFold>(lanes[i]), load_16(data + i * kLane));
  }
  Vector16 sum = lanes[0];
  for (size_t i = 1; i < kLanes; ++i) sum = xor_of(moved<8 * kLane>(sum), lanes[i]);
  for (; length >= kLane; data += kLane, length -= kLane) sum = xor_of(moved<8 * kLane>(sum), load_16(data));
  // The 16 bytes of the sum have the same CRC as all bytes before.
  uint8_t rest[kLane];
  store_16(rest, sum);
  return through_tables(through_tables(0, rest, kLane), data, length);
}

const bool kFolds = has_carryless_product();

}  // namespace

uint32_t crc32_continue_with_tables(uint32_t state, const uint8_t* data, size_t length) {
  return ~through_tables(~state, data, length);
}

uint32_t crc32_continue(uint32_t state, const uint8_t* data, size_t length) {
  if (kFolds && length >= kFold) return ~by_folding(~state, data, length);
  return crc32_continue_with_tables(state, data, length);
}

}  // namespace roci
