// SipHash-2-4 with a 64-bit result (Aumasson and Bernstein, "SipHash: a fast short-input PRF"), the keyed MAC of the
// wire extensions. Too slow for hash tables (flow_hasher.hpp).
//
// The input may be passed in pieces, so callers need not copy it together. Nothing is allocated.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/result.hpp"

namespace roci {

// 128 bits, in the byte order of the paper.
using SipKey = std::array<uint8_t, 16>;

class SipHash {
 public:
  explicit SipHash(const SipKey& key);
  void update(std::span<const uint8_t> bytes);
  // Returns the result as a number. The paper writes its bytes in little-endian order. No update() may follow.
  [[nodiscard]] uint64_t finish();

 private:
  void compress(uint64_t word);

  std::array<uint64_t, 4> v_;
  uint64_t tail_ = 0;    // bytes that do not fill a word yet, the first in the low bits
  uint64_t length_ = 0;  // bytes passed so far
};

uint64_t siphash(const SipKey& key, std::span<const uint8_t> bytes);

// A key as 32 hexadecimal digits.
Result<SipKey> parse_sip_key(std::string_view text);

// Compares two MACs in a time that does not depend on the position of the first difference.
bool is_same_mac(uint64_t a, uint64_t b);

}  // namespace roci
