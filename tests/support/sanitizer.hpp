// Sizes of tests that run with a sanitizer, with which the same code takes several times as long.
#pragma once

#include <cstdint>

namespace roci::test {

// GCC defines a macro for each sanitizer, Clang has a feature. The allocator of Clang's AddressSanitizer terminates the
// program if memory is not available.
#ifdef __has_feature
inline constexpr bool kSanitized = __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
inline constexpr bool kTerminatesWithoutMemory = __has_feature(address_sanitizer);
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
inline constexpr bool kTerminatesWithoutMemory = false;
#else
inline constexpr bool kSanitized = false;
inline constexpr bool kTerminatesWithoutMemory = false;
#endif

// Number of repetitions of a random test.
constexpr uint64_t repetitions(uint64_t number) { return kSanitized ? number / 4 : number; }

}  // namespace roci::test
