// Result and error types of the control path. An error has one sentence for a user: what is wrong, where, and what is
// allowed. The data path uses named outcomes and counters instead.
#pragma once

#include <cerrno>
#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace roci {

struct Error {
  std::string message;  // one sentence, no trailing newline
  int code = EINVAL;    // errno for a verbs caller

  // Returns the error with the caller's context in front: "config.yaml: ports: ...".
  [[nodiscard]] Error within(const std::string& where) const { return {where + ": " + message, code}; }
};

template <class T>
using Result = tl::expected<T, Error>;
using Status = Result<void>;

[[nodiscard]] inline tl::unexpected<Error> fail(std::string message, int code = EINVAL) {
  return tl::unexpected<Error>(Error{std::move(message), code});
}
[[nodiscard]] inline tl::unexpected<Error> fail(Error error) {
  return tl::unexpected<Error>(std::move(error));
}

// Returns the error of a Result from the enclosing function, or continues. May be used in a lambda within another
// ROCI_TRY expression.
#define ROCI_TRY(expression) ROCI_TRY_AS(expression, __COUNTER__)
#define ROCI_TRY_AS(expression, number) ROCI_TRY_CALLED(expression, number)
#define ROCI_TRY_CALLED(expression, number)                                            \
  do {                                                                                 \
    auto roci_try_##number = (expression);                                             \
    if (!roci_try_##number) return ::roci::fail(std::move(roci_try_##number).error()); \
  } while (false)

}  // namespace roci
