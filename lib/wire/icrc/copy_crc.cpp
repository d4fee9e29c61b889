#include "wire/icrc/copy_crc.hpp"

#include "base/os/guarded_access.hpp"
#include "base/os/guarded_copy.hpp"
#include "wire/icrc/crc_factors.hpp"
#include "wire/icrc/crc_sum.hpp"
#include "wire/icrc/icrc.hpp"

namespace roci {
namespace {

template <unsigned kBits>
Vector16 factors_for() {
  return vector_of(kEarlierFactor<kBits>, kLaterFactor<kBits>);
}

uint32_t with_isal(uint32_t state, uint8_t* to, const uint8_t* from, size_t length) {
  guarded_copy(to, from, length);
  return icrc_continue(state, to, length);
}

// Returns the register after the last bytes, which do not fill a wide register. A separate function, because it
// consists of SSE instructions, which must follow the release of the wide registers (see icrc_continue()).
__attribute__((noinline)) ROCI_CARRYLESS uint32_t finish(Vector16 sum, uint8_t* to, const uint8_t* from,
                                                         uint32_t left) {
  return crc_of_sum(copy_crc_pieces(sum, to, from, left, 0));
}

// Keeps the constant in its register. The compiler would otherwise reload it after each store that may leave the loop.
#define ROCI_KEEP(kind, value) asm("" : "+" kind(value))

#if defined(__x86_64__)

#define ROCI_AVX512 __attribute__((target("avx512f,avx512vl,avx512bw,vpclmulqdq,pclmul,sse4.1")))

ROCI_AVX512 __m512i fold(__m512i sum, __m512i factors, __m512i data) {
  const __m512i low = _mm512_clmulepi64_epi128(sum, factors, 0x00);
  const __m512i high = _mm512_clmulepi64_epi128(sum, factors, 0x11);
  return _mm512_ternarylogic_epi64(low, high, data, 0x96);  // XOR of the three
}

ROCI_AVX512 __m512i load_64(const uint8_t* from) {
  __m512i data;
  ROCI_GUARDED_LOAD("vmovdqu64", "v", data, from);
  return data;
}
ROCI_AVX512 bool try_store_64(uint8_t* to, __m512i data) {
  ROCI_RETURN_GUARDED_STORE("vmovdqu64", "v", data, to);
}
ROCI_AVX512 __m512i copy_64(uint8_t* to, const uint8_t* from) {
  const __m512i data = load_64(from);
  ROCI_GUARDED_STORE("vmovdqu64", "v", data, to);
  return data;
}

ROCI_AVX512 uint32_t with_avx512(uint32_t state, uint8_t* to, const uint8_t* from, size_t length) {
  constexpr size_t kLane = 64;
  constexpr size_t kStep = 4 * kLane;
  if (length < kCopyCrcWorthwhile) return with_isal(state, to, from, length);
  __m512i a = copy_64(to, from);
  __m512i b = copy_64(to + kLane, from + kLane);
  __m512i c = copy_64(to + 2 * kLane, from + 2 * kLane);
  __m512i d = copy_64(to + 3 * kLane, from + 3 * kLane);
  a = _mm512_xor_si512(a, _mm512_zextsi128_si512(_mm_cvtsi32_si128(static_cast<int>(~state))));
  to += kStep;
  from += kStep;
  length -= kStep;
  __m512i by_step = _mm512_broadcast_i32x4(factors_for<8 * kStep>());
  ROCI_KEEP("v", by_step);
  for (; length >= kStep; length -= kStep) {
    const __m512i first = load_64(from);
    if (!try_store_64(to, first)) return 0;
    a = fold(a, by_step, first);
    b = fold(b, by_step, copy_64(to + kLane, from + kLane));
    c = fold(c, by_step, copy_64(to + 2 * kLane, from + 2 * kLane));
    d = fold(d, by_step, copy_64(to + 3 * kLane, from + 3 * kLane));
    to += kStep;
    from += kStep;
  }
  const __m512i by_lane = _mm512_broadcast_i32x4(factors_for<8 * kLane>());
  a = fold(fold(fold(a, by_lane, b), by_lane, c), by_lane, d);
  for (; length >= kLane; length -= kLane) {
    a = fold(a, by_lane, copy_64(to, from));
    to += kLane;
    from += kLane;
  }
  const auto left = static_cast<uint32_t>(length);
  __m128i sum = xor_of(crc_piece(_mm512_extracti32x4_epi32(a, 0), left + 48),
                       crc_piece(_mm512_extracti32x4_epi32(a, 1), left + 32));
  sum = xor_of(sum, xor_of(crc_piece(_mm512_extracti32x4_epi32(a, 2), left + 16),
                           crc_piece(_mm512_extracti32x4_epi32(a, 3), left)));
  _mm256_zeroupper();
  return finish(sum, to, from, left);
}

#undef ROCI_AVX512

// The same with registers of 32 bytes, and below of 16.
#define ROCI_AVX2 __attribute__((target("avx2,vpclmulqdq,pclmul,sse4.1")))

ROCI_AVX2 __m256i fold(__m256i sum, __m256i factors, __m256i data) {
  const __m256i low = _mm256_clmulepi64_epi128(sum, factors, 0x00);
  const __m256i high = _mm256_clmulepi64_epi128(sum, factors, 0x11);
  return _mm256_xor_si256(_mm256_xor_si256(low, high), data);
}

ROCI_AVX2 __m256i load_32(const uint8_t* from) {
  __m256i data;
  ROCI_GUARDED_LOAD("vmovdqu", "x", data, from);
  return data;
}
ROCI_AVX2 bool try_store_32(uint8_t* to, __m256i data) {
  ROCI_RETURN_GUARDED_STORE("vmovdqu", "x", data, to);
}
ROCI_AVX2 __m256i copy_32(uint8_t* to, const uint8_t* from) {
  const __m256i data = load_32(from);
  ROCI_GUARDED_STORE("vmovdqu", "x", data, to);
  return data;
}

// The lanes are variables: the compiler would keep an array in memory because of the assembly in the copies.
ROCI_AVX2 uint32_t with_avx2(uint32_t state, uint8_t* to, const uint8_t* from, size_t length) {
  constexpr size_t kLane = 32;
  constexpr size_t kStep = 8 * kLane;
  if (length < kCopyCrcWorthwhile) return with_isal(state, to, from, length);
  __m256i a = copy_32(to, from), b = copy_32(to + kLane, from + kLane);
  __m256i c = copy_32(to + 2 * kLane, from + 2 * kLane), d = copy_32(to + 3 * kLane, from + 3 * kLane);
  __m256i e = copy_32(to + 4 * kLane, from + 4 * kLane), f = copy_32(to + 5 * kLane, from + 5 * kLane);
  __m256i g = copy_32(to + 6 * kLane, from + 6 * kLane), h = copy_32(to + 7 * kLane, from + 7 * kLane);
  a = _mm256_xor_si256(a, _mm256_zextsi128_si256(_mm_cvtsi32_si128(static_cast<int>(~state))));
  __m256i by_step = _mm256_broadcastsi128_si256(factors_for<8 * kStep>());
  ROCI_KEEP("x", by_step);
  const size_t whole = length - length % kStep;
  for (size_t at = kStep; at != whole; at += kStep) {
    const __m256i first = load_32(from + at);
    if (!try_store_32(to + at, first)) return 0;
    a = fold(a, by_step, first);
    b = fold(b, by_step, copy_32(to + at + kLane, from + at + kLane));
    c = fold(c, by_step, copy_32(to + at + 2 * kLane, from + at + 2 * kLane));
    d = fold(d, by_step, copy_32(to + at + 3 * kLane, from + at + 3 * kLane));
    e = fold(e, by_step, copy_32(to + at + 4 * kLane, from + at + 4 * kLane));
    f = fold(f, by_step, copy_32(to + at + 5 * kLane, from + at + 5 * kLane));
    g = fold(g, by_step, copy_32(to + at + 6 * kLane, from + at + 6 * kLane));
    h = fold(h, by_step, copy_32(to + at + 7 * kLane, from + at + 7 * kLane));
  }
  to += whole;
  from += whole;
  length -= whole;
  const __m256i by_lane = _mm256_broadcastsi128_si256(factors_for<8 * kLane>());
  __m256i sum = fold(fold(fold(a, by_lane, b), by_lane, c), by_lane, d);
  sum = fold(fold(fold(fold(sum, by_lane, e), by_lane, f), by_lane, g), by_lane, h);
  for (; length >= kLane; to += kLane, from += kLane, length -= kLane)
    sum = fold(sum, by_lane, copy_32(to, from));
  const auto left = static_cast<uint32_t>(length);
  const __m128i end = xor_of(crc_piece(_mm256_extracti128_si256(sum, 0), left + 16),
                             crc_piece(_mm256_extracti128_si256(sum, 1), left));
  _mm256_zeroupper();
  return finish(end, to, from, left);
}

#undef ROCI_AVX2

#endif

ROCI_CARRYLESS Vector16 fold(Vector16 sum, Vector16 factors, Vector16 data) {
  return xor_of(xor_of(product_of_lows(sum, factors), product_of_highs(sum, factors)), data);
}

ROCI_CARRYLESS Vector16 copy_16(uint8_t* to, const uint8_t* from) {
  Vector16 data;
  guarded_load(from, data);
  guarded_store(to, data);
  return data;
}

ROCI_CARRYLESS uint32_t with_clmul(uint32_t state, uint8_t* to, const uint8_t* from, size_t length) {
  constexpr size_t kLane = 16;
  constexpr size_t kStep = 8 * kLane;
  if (length < kCopyCrcWorthwhile) return with_isal(state, to, from, length);
  Vector16 a = copy_16(to, from), b = copy_16(to + kLane, from + kLane);
  Vector16 c = copy_16(to + 2 * kLane, from + 2 * kLane), d = copy_16(to + 3 * kLane, from + 3 * kLane);
  Vector16 e = copy_16(to + 4 * kLane, from + 4 * kLane), f = copy_16(to + 5 * kLane, from + 5 * kLane);
  Vector16 g = copy_16(to + 6 * kLane, from + 6 * kLane), h = copy_16(to + 7 * kLane, from + 7 * kLane);
  a = xor_of(a, vector_of(~state, 0));
  Vector16 by_step = factors_for<8 * kStep>();
  ROCI_KEEP(ROCI_VECTOR, by_step);
  const size_t whole = length - length % kStep;
  for (size_t at = kStep; at != whole; at += kStep) {
    Vector16 first;
    guarded_load(from + at, first);
    if (!try_guarded_store(to + at, first)) return 0;
    a = fold(a, by_step, first);
    b = fold(b, by_step, copy_16(to + at + kLane, from + at + kLane));
    c = fold(c, by_step, copy_16(to + at + 2 * kLane, from + at + 2 * kLane));
    d = fold(d, by_step, copy_16(to + at + 3 * kLane, from + at + 3 * kLane));
    e = fold(e, by_step, copy_16(to + at + 4 * kLane, from + at + 4 * kLane));
    f = fold(f, by_step, copy_16(to + at + 5 * kLane, from + at + 5 * kLane));
    g = fold(g, by_step, copy_16(to + at + 6 * kLane, from + at + 6 * kLane));
    h = fold(h, by_step, copy_16(to + at + 7 * kLane, from + at + 7 * kLane));
  }
  to += whole;
  from += whole;
  length -= whole;
  const Vector16 by_lane = factors_for<8 * kLane>();
  Vector16 sum = fold(fold(fold(a, by_lane, b), by_lane, c), by_lane, d);
  sum = fold(fold(fold(fold(sum, by_lane, e), by_lane, f), by_lane, g), by_lane, h);
  const auto left = static_cast<uint32_t>(length);
  return finish(crc_piece(sum, left), to, from, left);
}

}  // namespace

CopyCrc copy_crc_isal() { return with_isal; }

CopyCrc copy_crc_avx512() {
#if defined(__x86_64__)
  const bool has = has_carryless_product() && __builtin_cpu_supports("avx512f") &&
                   __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw") &&
                   __builtin_cpu_supports("vpclmulqdq");
  return has ? with_avx512 : nullptr;
#else
  return nullptr;
#endif
}

CopyCrc copy_crc_avx2() {
#if defined(__x86_64__)
  const bool has =
      has_carryless_product() && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("vpclmulqdq");
  return has ? with_avx2 : nullptr;
#else
  return nullptr;
#endif
}

CopyCrc copy_crc_clmul() { return has_carryless_product() ? with_clmul : nullptr; }

namespace {

CopyCrc best() {
  static const CopyCrc best_copy = [] {
    for (const CopyCrc one : {copy_crc_avx512(), copy_crc_avx2(), copy_crc_clmul()}) {
      if (one != nullptr) return one;
    }
    return copy_crc_isal();
  }();
  return best_copy;
}

}  // namespace

bool copies_in_one_pass() { return best() != copy_crc_isal(); }

uint32_t copy_crc(uint32_t state, uint8_t* to, const uint8_t* from, size_t length) {
  return best()(state, to, from, length);
}

}  // namespace roci
