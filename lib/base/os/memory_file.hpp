// Anonymous file in memory (memfd).
#pragma once

#include <sys/mman.h>

#include <cerrno>

namespace roci {

// MFD_NOEXEC_SEAL and F_SEAL_EXEC of Linux 6.3, which older headers do not define.
constexpr unsigned kMemoryFileNotExecutable = 0x0008;
constexpr int kSealOfNotExecutable = 0x0020;

// Returns a descriptor, or -1 and sets errno. The file is not executable, as the setting vm.memfd_noexec=2 requires.
inline int create_memory_file(const char* name, unsigned flags) {
  const int fd = memfd_create(name, flags | kMemoryFileNotExecutable);
  return fd >= 0 || errno != EINVAL ? fd : memfd_create(name, flags);  // Linux before 6.3
}

}  // namespace roci
