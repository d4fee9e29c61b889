#include "wire/copy_crc.hpp"

#include <immintrin.h>
#include <isa-l/crc.h>

#include <cstring>

#include "wire/crc_factors.hpp"
#include "wire/crc_sum.hpp"

namespace roci {
namespace {

template <unsigned kBits>
__m128i factors_for() {
  return _mm_set_epi64x(static_cast<int64_t>(kLaterFactor<kBits>),
                        static_cast<int64_t>(kEarlierFactor<kBits>));
}

uint32_t with_isal(uint32_t state, uint8_t* to, const uint8_t* from, size_t length) {
  std::memcpy(to, from, length);
  return crc32_gzip_refl(state, to, length);
}

#define ROCI_AVX512 __attribute__((target("avx512f,avx512vl,avx512bw,vpclmulqdq,pclmul,sse4.1")))

ROCI_AVX512 __m512i fold(__m512i sum, __m512i factors, __m512i data) {
  const __m512i low = _mm512_clmulepi64_epi128(sum, factors, 0x00);
  const __m512i high = _mm512_clmulepi64_epi128(sum, factors, 0x11);
  return _mm512_ternarylogic_epi64(low, high, data, 0x96);  // exclusive or of the three
}

ROCI_AVX512 __m512i copy_64(uint8_t* to, const uint8_t* from) {
  const __m512i data = _mm512_loadu_si512(from);
  _mm512_storeu_si512(to, data);
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
  const __m512i by_step = _mm512_broadcast_i32x4(factors_for<8 * kStep>());
  for (; length >= kStep; length -= kStep) {
    a = fold(a, by_step, copy_64(to, from));
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
  __m128i sum = _mm_xor_si128(crc_piece(_mm512_extracti32x4_epi32(a, 0), left + 48),
                              crc_piece(_mm512_extracti32x4_epi32(a, 1), left + 32));
  sum = _mm_xor_si128(sum, _mm_xor_si128(crc_piece(_mm512_extracti32x4_epi32(a, 2), left + 16),
                                         crc_piece(_mm512_extracti32x4_epi32(a, 3), left)));
  return crc_of_sum(crc_pieces(sum, to, from, left, 0));
}

#undef ROCI_AVX512

}  // namespace

CopyCrc copy_crc_isal() { return with_isal; }

CopyCrc copy_crc_avx512() {
  const bool has = has_carryless_product() && __builtin_cpu_supports("avx512f") &&
                   __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw") &&
                   __builtin_cpu_supports("vpclmulqdq");
  return has ? with_avx512 : nullptr;
}

bool copies_in_one_pass() {
  static const bool has = copy_crc_avx512() != nullptr;
  return has;
}

uint32_t copy_crc(uint32_t state, uint8_t* to, const uint8_t* from, size_t length) {
  static const CopyCrc best = [] {
    if (const CopyCrc way = copy_crc_avx512(); way != nullptr) return way;
    return copy_crc_isal();
  }();
  return best(state, to, from, length);
}

}  // namespace roci
