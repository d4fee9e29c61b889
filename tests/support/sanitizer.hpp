// Sizes of tests that run with a sanitizer, with which the same code takes several times as long.
#pragma once

#include <cstdint>

namespace roci::test {

// GCC defines a macro for each sanitizer, Clang has a feature.
#ifdef __has_feature
inline constexpr bool kThreadSanitizer = __has_feature(thread_sanitizer);
inline constexpr bool kSanitized = kThreadSanitizer || __has_feature(address_sanitizer);
// The allocator of Clang's AddressSanitizer terminates the program if memory is not available.
inline constexpr bool kTerminatesWithoutMemory = __has_feature(address_sanitizer);
#else
#ifdef __SANITIZE_THREAD__
inline constexpr bool kThreadSanitizer = true;
#else
inline constexpr bool kThreadSanitizer = false;
#endif
#ifdef __SANITIZE_ADDRESS__
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = kThreadSanitizer;
#endif
inline constexpr bool kTerminatesWithoutMemory = false;
#endif

// Number of repetitions of a random test.
constexpr uint64_t repetitions(uint64_t number) { return kSanitized ? number / 4 : number; }

}  // namespace roci::test
