// Helpers of the fuzz targets: abort on a failed check, and a reader that turns the input into choices.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <utility>

#include "roci/result.hpp"

namespace roci::test {

inline void require(bool holds, const char* what = "what this line asks for", int line = __builtin_LINE()) {
  if (holds) return;
  std::fprintf(stderr, "violated: %s (line %d)\n", what, line);
  std::abort();
}
inline void require(const Status& status, int line = __builtin_LINE()) {
  if (!status) require(false, status.error().message.c_str(), line);
}
template <class T>
T require(Result<T> result, int line = __builtin_LINE()) {
  if (!result) require(false, result.error().message.c_str(), line);
  return std::move(*result);
}

// Returns zeros after the end of the input.
class Input {
 public:
  Input(const uint8_t* data, size_t size) : rest_(data, size) {}
  [[nodiscard]] bool empty() const { return rest_.empty(); }
  uint8_t byte() {
    if (rest_.empty()) return 0;
    const uint8_t value = rest_.front();
    rest_ = rest_.subspan(1);
    return value;
  }
  template <class T>
  T number() {
    T value = 0;
    for (size_t i = 0; i < sizeof(T); ++i) value = static_cast<T>(value << 8 | byte());
    return value;
  }
  // Returns fewer at the end of the input.
  std::span<const uint8_t> take(size_t size) {
    const auto taken = rest_.first(std::min(size, rest_.size()));
    rest_ = rest_.subspan(taken.size());
    return taken;
  }

 private:
  std::span<const uint8_t> rest_;
};

}  // namespace roci::test
