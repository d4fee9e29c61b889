// Limit of file sizes (RLIMIT_FSIZE, ulimit -f).
#pragma once

#include <sys/resource.h>

#include <cstdint>

namespace roci {

// Whether the process may not extend a file to this size. The attempt would terminate it by SIGXFSZ.
inline bool exceeds_file_size_limit(uint64_t bytes) {
  rlimit limit{};
  return getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && bytes > limit.rlim_cur;
}

}  // namespace roci
