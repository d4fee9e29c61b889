#include "wire/copy_crc.hpp"

#include <immintrin.h>
#include <isa-l/crc.h>

#include <cstring>

namespace roci {
namespace {

// Folding (Gopal et al., "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ", 2009): 16 bytes of a message
// may be taken away when what they are worth `bits` further on is added there. Polynomials are reflected: the lowest
// power is the highest bit.
constexpr uint32_t kPolynomial = 0xedb88320;

// x^n modulo the polynomial, reflected, and shifted by one, which makes up for a carry-less product of reflected numbers
// being one bit short.
constexpr uint64_t power_of_x(unsigned n) {
  uint32_t value = 0x80000000;  // x^0
  for (; n > 0; --n) value = (value >> 1) ^ ((value & 1) != 0 ? kPolynomial : 0);
  return uint64_t{value} << 1;
}
// Of the earlier and of the later 8 bytes.
template <unsigned kBits>
constexpr uint64_t kLowFactor = power_of_x(kBits + 32);
template <unsigned kBits>
constexpr uint64_t kHighFactor = power_of_x(kBits - 32);
static_assert(kLowFactor<512> == 0x154442bd4 && kHighFactor<512> == 0x1c6e41596);  // as the paper has them

template <unsigned kBits>
__m128i factors_for() {
  return _mm_set_epi64x(static_cast<int64_t>(kHighFactor<kBits>), static_cast<int64_t>(kLowFactor<kBits>));
}

// The CRC of what is left: `folded`, which stands for everything up to here with its CRC register, and the tail.
template <size_t kFolded>
uint32_t finish(uint8_t* folded, uint8_t* to, const uint8_t* from, size_t tail) {
  constexpr uint32_t kZeroRegister = 0xffffffff;  // ISA-L takes and gives it inverted
  std::memcpy(folded + kFolded, from, tail);
  std::memcpy(to, from, tail);
  return crc32_gzip_refl(kZeroRegister, folded, kFolded + tail);
}

uint32_t with_isal(uint32_t state, uint8_t* to, const uint8_t* from, size_t length) {
  std::memcpy(to, from, length);
  return crc32_gzip_refl(state, to, length);
}

#define ROCI_AVX512 __attribute__((target("avx512f,avx512vl,avx512bw,vpclmulqdq")))

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
  alignas(64) uint8_t folded[2 * kLane];
  _mm512_store_si512(folded, a);
  return finish<kLane>(folded, to, from, length);
}

#undef ROCI_AVX512

}  // namespace

CopyCrc copy_crc_isal() { return with_isal; }

CopyCrc copy_crc_avx512() {
  const bool has = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                   __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("vpclmulqdq");
  return has ? with_avx512 : nullptr;
}

uint32_t copy_crc(uint32_t state, uint8_t* to, const uint8_t* from, size_t length) {
  static const CopyCrc best = [] {
    if (const CopyCrc way = copy_crc_avx512(); way != nullptr) return way;
    return copy_crc_isal();
  }();
  return best(state, to, from, length);
}

}  // namespace roci
