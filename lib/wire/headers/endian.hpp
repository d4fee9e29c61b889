// Big-endian fields of packet headers. They are byte arrays with explicit conversion. A header struct therefore has no
// padding and needs no alignment, and a field cannot be used as a number by accident.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace roci {

template <class Value, size_t kBytes>
class BigEndian {
 public:
  constexpr BigEndian() = default;
  constexpr explicit BigEndian(Value value) { set(value); }
  [[nodiscard]] constexpr Value get() const {
    if constexpr (sizeof(Value) == kBytes) return swapped(std::bit_cast<Value>(bytes_));
    Value value = 0;
    for (const uint8_t byte : bytes_) value = static_cast<Value>(static_cast<uint64_t>(value) << 8 | byte);
    return value;
  }
  constexpr void set(Value value) {
    if constexpr (sizeof(Value) == kBytes) {
      bytes_ = std::bit_cast<std::array<uint8_t, kBytes>>(swapped(value));
      return;
    }
    for (size_t i = 0; i < kBytes; ++i) {
      bytes_[i] = static_cast<uint8_t>(static_cast<uint64_t>(value) >> (8 * (kBytes - 1 - i)));
    }
  }

 private:
  // Compiles to one load or store and one instruction, unlike the loops over bytes.
  static constexpr Value swapped(Value value) {
    if constexpr (std::endian::native == std::endian::big || kBytes == 1) return value;
    if constexpr (kBytes == 2) return __builtin_bswap16(value);
    if constexpr (kBytes == 4) return __builtin_bswap32(value);
    if constexpr (kBytes == 8) return __builtin_bswap64(value);
  }

  std::array<uint8_t, kBytes> bytes_{};
};

using Be16 = BigEndian<uint16_t, 2>;
using Be24 = BigEndian<uint32_t, 3>;
using Be32 = BigEndian<uint32_t, 4>;
using Be64 = BigEndian<uint64_t, 8>;

}  // namespace roci
