#include "base/os/guarded_copy.hpp"

#include "base/os/guarded_access.hpp"

namespace roci {
namespace {

// The application may register any address, including null. Computing such addresses is no error; only accesses can
// fault.
#define ROCI_ANY_ADDRESS __attribute__((no_sanitize("pointer-overflow")))

// Copies sizeof(T) bytes at either end; the two parts may overlap.
template <class T>
ROCI_ANY_ADDRESS void copy_ends(uint8_t* to, const uint8_t* from, size_t length) {
  T first, last;
  guarded_load(from, first);
  guarded_load(from + length - sizeof(T), last);
  guarded_store(to, first);
  guarded_store(to + length - sizeof(T), last);
}

ROCI_ANY_ADDRESS void copy_short(uint8_t* to, const uint8_t* from, size_t length) {
  if (length >= 8) return copy_ends<uint64_t>(to, from, length);
  if (length >= 4) return copy_ends<uint32_t>(to, from, length);
  if (length >= 2) return copy_ends<uint16_t>(to, from, length);
  if (length == 1) copy_ends<uint8_t>(to, from, 1);
}

// Up to 64 bytes.
[[gnu::always_inline]] ROCI_ANY_ADDRESS inline void copy_up_to_64(uint8_t* to, const uint8_t* from,
                                                                  size_t length) {
  if (length < 16) return copy_short(to, from, length);
  if (length > 32) {
    Vector16 second, last_but_one;
    guarded_load(from + 16, second);
    guarded_load(from + length - 32, last_but_one);
    guarded_store(to + 16, second);
    guarded_store(to + length - 32, last_but_one);
  }
  copy_ends<Vector16>(to, from, length);
}

#if defined(__x86_64__)
#define ROCI_AVX __attribute__((target("avx")))

[[gnu::always_inline]] ROCI_AVX inline __m256i load_32(const uint8_t* from) {
  __m256i value;
  ROCI_GUARDED_LOAD("vmovdqu", "x", value, from);
  return value;
}
[[gnu::always_inline]] ROCI_AVX inline void store_32(uint8_t* to, __m256i value) {
  ROCI_GUARDED_STORE("vmovdqu", "x", value, to);
}
[[gnu::always_inline]] ROCI_AVX inline bool try_store_32(uint8_t* to, __m256i value) {
  ROCI_RETURN_GUARDED_STORE("vmovdqu", "x", value, to);
}

// At least 128 bytes.
ROCI_AVX ROCI_ANY_ADDRESS void copy_wide(uint8_t* to, const uint8_t* from, size_t length) {
  constexpr size_t kStep = 128;
  uint8_t* const to_last = to + length - kStep;
  const uint8_t* const from_last = from + length - kStep;
  for (; to < to_last; to += kStep, from += kStep) {
    const __m256i a = load_32(from), b = load_32(from + 32), c = load_32(from + 64), d = load_32(from + 96);
    if (!try_store_32(to, a)) return;
    store_32(to + 32, b);
    store_32(to + 64, c);
    store_32(to + 96, d);
  }
  const __m256i a = load_32(from_last), b = load_32(from_last + 32), c = load_32(from_last + 64),
                d = load_32(from_last + 96);
  store_32(to_last, a);
  store_32(to_last + 32, b);
  store_32(to_last + 64, c);
  store_32(to_last + 96, d);
}

const bool kWideRegisters = __builtin_cpu_supports("avx") != 0;
#else
constexpr bool kWideRegisters = false;
void copy_wide(uint8_t*, const uint8_t*, size_t) {}
#endif

}  // namespace

ROCI_ANY_ADDRESS void guarded_copy(uint8_t* to, const uint8_t* from, size_t length) {
  if (length <= 64) return copy_up_to_64(to, from, length);
  if (length >= 128 && kWideRegisters) return copy_wide(to, from, length);
  for (; length > 64; to += 64, from += 64, length -= 64) {
    Vector16 a, b, c, d;
    guarded_load(from, a);
    guarded_load(from + 16, b);
    guarded_load(from + 32, c);
    guarded_load(from + 48, d);
    if (!try_guarded_store(to, a)) return;
    guarded_store(to + 16, b);
    guarded_store(to + 32, c);
    guarded_store(to + 48, d);
  }
  copy_up_to_64(to, from, length);
}

}  // namespace roci
