// must(): returns the value of a Result, or throws its error message, which GoogleTest reports as a failure. For
// tests and benchmarks.
#pragma once

#include <stdexcept>
#include <utility>

#include "roci/result.hpp"

namespace roci::test {

template <class T>
T must(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message);
  return std::move(*result);
}
inline void must(const Status& status) {
  if (!status) throw std::runtime_error(status.error().message);
}

}  // namespace roci::test
