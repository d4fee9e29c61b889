#include "wire/extensions/siphash.hpp"

#include <bit>

namespace roci {
namespace {

uint64_t load_le64(const uint8_t* p) {
  uint64_t word = 0;
  for (unsigned i = 0; i < 8; ++i) word |= static_cast<uint64_t>(p[i]) << (8 * i);
  return word;
}

void round(std::array<uint64_t, 4>& v) {
  v[0] += v[1];
  v[2] += v[3];
  v[1] = std::rotl(v[1], 13) ^ v[0];
  v[3] = std::rotl(v[3], 16) ^ v[2];
  v[0] = std::rotl(v[0], 32);
  v[2] += v[1];
  v[0] += v[3];
  v[1] = std::rotl(v[1], 17) ^ v[2];
  v[3] = std::rotl(v[3], 21) ^ v[0];
  v[2] = std::rotl(v[2], 32);
}

}  // namespace

SipHash::SipHash(const SipKey& key) {
  const uint64_t k0 = load_le64(key.data());
  const uint64_t k1 = load_le64(key.data() + 8);
  // "somepseudorandomlygeneratedbytes" (§2.2 of the paper).
  v_ = {k0 ^ 0x736f6d6570736575, k1 ^ 0x646f72616e646f6d, k0 ^ 0x6c7967656e657261, k1 ^ 0x7465646279746573};
}

void SipHash::compress(uint64_t word) {
  v_[3] ^= word;
  round(v_);
  round(v_);
  v_[0] ^= word;
}

void SipHash::update(std::span<const uint8_t> bytes) {
  const uint8_t* at = bytes.data();
  size_t left = bytes.size();
  while (left > 0 && length_ % 8 != 0) {
    tail_ |= static_cast<uint64_t>(*at++) << (8 * (length_++ % 8));
    --left;
    if (length_ % 8 == 0) {
      compress(tail_);
      tail_ = 0;
    }
  }
  for (; left >= 8; left -= 8, at += 8, length_ += 8) compress(load_le64(at));
  for (; left > 0; --left) tail_ |= static_cast<uint64_t>(*at++) << (8 * (length_++ % 8));
}

uint64_t SipHash::finish() {
  compress(tail_ | length_ << 56);  // the last word contains the length modulo 256
  v_[2] ^= 0xff;
  for (int i = 0; i < 4; ++i) round(v_);
  return v_[0] ^ v_[1] ^ v_[2] ^ v_[3];
}

uint64_t siphash(const SipKey& key, std::span<const uint8_t> bytes) {
  SipHash hash(key);
  hash.update(bytes);
  return hash.finish();
}

Result<SipKey> parse_sip_key(std::string_view text) {
  SipKey key{};
  constexpr std::string_view kDigits = "0123456789abcdef0123456789ABCDEF";
  if (text.size() != 2 * key.size())
    return fail("a key must have 32 hexadecimal digits, not " + std::to_string(text.size()) + " characters");
  for (size_t i = 0; i < text.size(); ++i) {
    const size_t digit = kDigits.find(text[i]);
    if (digit == std::string_view::npos)
      return fail("a key must have 32 hexadecimal digits; character " + std::to_string(i + 1) +
                  " is not one");
    key[i / 2] = static_cast<uint8_t>(key[i / 2] << 4 | (digit & 15U));
  }
  return key;
}

bool is_same_mac(uint64_t a, uint64_t b) {
  // Accesses through volatile, so that the compiler cannot stop at the first difference.
  const volatile uint64_t difference = a ^ b;
  uint64_t folded = difference;
  folded |= folded >> 32;
  folded |= folded >> 16;
  folded |= folded >> 8;
  folded |= folded >> 4;
  folded |= folded >> 2;
  folded |= folded >> 1;
  return (folded & 1) == 0;
}

}  // namespace roci
