// A test has no use for an error, nor has a benchmark: the value, or an exception with the error's sentence, which
// GoogleTest reports as a failure.
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
