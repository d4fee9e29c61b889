// 16 bytes in a register of the processor, and the operations on them that the ICRC and the copies need: SSE on x86-64,
// NEON on arm64. The first 8 bytes are the low half. Other registers are used only where a file selects them at run time
// (wire/icrc/copy_crc.cpp, base/os/guarded_copy.cpp).
#pragma once

#include <cstdint>

#if defined(__x86_64__)
#include <immintrin.h>
// Compiles a function for processors with carry-less products; callers check has_carryless_product().
#define ROCI_CARRYLESS __attribute__((target("pclmul,sse4.1")))
#elif defined(__aarch64__)
#include <arm_neon.h>
#define ROCI_CARRYLESS __attribute__((target("+crypto")))
#else
#error "the processor must be x86-64 or arm64"
#endif

namespace roci {

#if defined(__x86_64__)

using Vector16 = __m128i;

inline Vector16 load_16(const uint8_t* from) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
}
// The address is a multiple of 16.
inline Vector16 load_16_aligned(const void* from) {
  return _mm_load_si128(static_cast<const __m128i*>(from));
}
inline void store_16(uint8_t* to, Vector16 value) { _mm_storeu_si128(reinterpret_cast<__m128i*>(to), value); }
inline Vector16 vector_of(uint64_t low, uint64_t high) {
  return _mm_set_epi64x(static_cast<int64_t>(high), static_cast<int64_t>(low));
}
inline Vector16 xor_of(Vector16 a, Vector16 b) { return _mm_xor_si128(a, b); }
inline Vector16 or_of(Vector16 a, Vector16 b) { return _mm_or_si128(a, b); }
inline Vector16 and_of(Vector16 a, Vector16 b) { return _mm_and_si128(a, b); }
// Moves the bytes down by kBytes, and zeros in.
template <int kBytes>
inline Vector16 shifted_down(Vector16 value) {
  return _mm_srli_si128(value, kBytes);
}
// Replaces 2 bytes at twice the index.
template <int kIndex>
inline Vector16 with_16_bits(Vector16 value, uint16_t bits) {
  return _mm_insert_epi16(value, bits, kIndex);
}
// Bytes 4 to 7.
ROCI_CARRYLESS inline uint32_t second_32_bits(Vector16 value) {
  return static_cast<uint32_t>(_mm_extract_epi32(value, 1));
}

// Carry-less products of two halves.
ROCI_CARRYLESS inline Vector16 product_of_lows(Vector16 a, Vector16 b) {
  return _mm_clmulepi64_si128(a, b, 0x00);
}
ROCI_CARRYLESS inline Vector16 product_of_highs(Vector16 a, Vector16 b) {
  return _mm_clmulepi64_si128(a, b, 0x11);
}
ROCI_CARRYLESS inline Vector16 product_of_low_and_high(Vector16 a, Vector16 b) {
  return _mm_clmulepi64_si128(a, b, 0x10);
}

#else

using Vector16 = uint8x16_t;

inline Vector16 load_16(const uint8_t* from) { return vld1q_u8(from); }
inline Vector16 load_16_aligned(const void* from) { return vld1q_u8(static_cast<const uint8_t*>(from)); }
inline void store_16(uint8_t* to, Vector16 value) { vst1q_u8(to, value); }
inline Vector16 vector_of(uint64_t low, uint64_t high) {
  return vreinterpretq_u8_u64(vcombine_u64(vcreate_u64(low), vcreate_u64(high)));
}
inline Vector16 xor_of(Vector16 a, Vector16 b) { return veorq_u8(a, b); }
inline Vector16 or_of(Vector16 a, Vector16 b) { return vorrq_u8(a, b); }
inline Vector16 and_of(Vector16 a, Vector16 b) { return vandq_u8(a, b); }
template <int kBytes>
inline Vector16 shifted_down(Vector16 value) {
  return vextq_u8(value, vdupq_n_u8(0), kBytes);
}
template <int kIndex>
inline Vector16 with_16_bits(Vector16 value, uint16_t bits) {
  return vreinterpretq_u8_u16(vsetq_lane_u16(bits, vreinterpretq_u16_u8(value), kIndex));
}
inline uint32_t second_32_bits(Vector16 value) { return vgetq_lane_u32(vreinterpretq_u32_u8(value), 1); }

ROCI_CARRYLESS inline Vector16 product(uint64_t a, uint64_t b) {
  return vreinterpretq_u8_p128(vmull_p64(static_cast<poly64_t>(a), static_cast<poly64_t>(b)));
}
ROCI_CARRYLESS inline Vector16 product_of_lows(Vector16 a, Vector16 b) {
  return product(vgetq_lane_u64(vreinterpretq_u64_u8(a), 0), vgetq_lane_u64(vreinterpretq_u64_u8(b), 0));
}
ROCI_CARRYLESS inline Vector16 product_of_highs(Vector16 a, Vector16 b) {
  return product(vgetq_lane_u64(vreinterpretq_u64_u8(a), 1), vgetq_lane_u64(vreinterpretq_u64_u8(b), 1));
}
ROCI_CARRYLESS inline Vector16 product_of_low_and_high(Vector16 a, Vector16 b) {
  return product(vgetq_lane_u64(vreinterpretq_u64_u8(a), 0), vgetq_lane_u64(vreinterpretq_u64_u8(b), 1));
}

#endif

// Whether the processor has carry-less products (PCLMULQDQ, PMULL).
bool has_carryless_product();

}  // namespace roci
