// Errors of the C++ API as verbs callers see them: an errno. The sentence goes to the log, at level info, since programs
// also ask for what they expect to be refused (ROCI_LOG=info shows it).
#pragma once

#include <cerrno>

#include "base/log.hpp"
#include "roci/result.hpp"

namespace roci::verbs {

// For calls that return an errno.
inline int code_of(const Error& error) {
  log().info("{}", error.message);
  return error.code;
}
inline int code_of(const Status& status) { return status ? 0 : code_of(status.error()); }

// For calls that return a null pointer and set errno.
inline std::nullptr_t refuse(int code) {
  errno = code;
  return nullptr;
}
inline std::nullptr_t refuse(const Error& error) { return refuse(code_of(error)); }

}  // namespace roci::verbs
