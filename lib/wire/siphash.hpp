// SipHash-2-4 with a 64-bit result (Aumasson and Bernstein, "SipHash: a fast short-input PRF"): the keyed MAC of
// the extensions, and nothing that a hash table should use. Fed in pieces, so that what is covered need not be
// copied together; nothing is allocated.
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
  // The result as a number; the paper writes its bytes little-endian. Ends the computation.
  [[nodiscard]] uint64_t finish();

 private:
  void compress(uint64_t word);

  std::array<uint64_t, 4> v_;
  uint64_t tail_ = 0;    // the bytes that do not fill a word yet, first in the low bits
  uint64_t length_ = 0;  // of everything so far
};

uint64_t siphash(const SipKey& key, std::span<const uint8_t> bytes);

// A key as 32 hexadecimal digits.
Result<SipKey> parse_sip_key(std::string_view text);

// Whether two MACs are the same, in a time that does not depend on where they differ.
bool is_same_mac(uint64_t a, uint64_t b);

}  // namespace roci
