// Conversion of errors of the C++ API to the errno of verbs calls. The message is logged at info level (ROCI_LOG=info),
// because programs also make calls that they expect to fail.
#pragma once

#include <cerrno>

#include "base/log.hpp"
#include "roci/result.hpp"

namespace roci::verbs {

// For calls that return an errno. They also set errno, as those of rdma-core do.
inline int refuse_with(int code) {
  errno = code;
  return code;
}
inline int code_of(const Error& error) {
  log().info("{}", error.message);
  return refuse_with(error.code);
}
inline int code_of(const Status& status) { return status ? 0 : code_of(status.error()); }

// For calls that return a null pointer and set errno.
inline std::nullptr_t refuse(int code) {
  errno = code;
  return nullptr;
}
inline std::nullptr_t refuse(const Error& error) { return refuse(code_of(error)); }

}  // namespace roci::verbs
