// Location of sysfs, and reading of its files. Rocinante devices
// have no files there; programs read those of other devices.
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

constexpr size_t kMaxRoot = 256;

std::string find_root() {
  const char* given = secure_getenv("SYSFS_PATH");  // ignored in set-user-ID programs
  std::string root = given != nullptr ? given : "/sys";
  if (root.size() > kMaxRoot) root.resize(kMaxRoot);
  while (!root.empty() && root.back() == '/') root.pop_back();
  return root;
}

// Reads up to `size` bytes of a file; -1 with errno if it cannot be read. A sysfs file is returned by one read().
ssize_t read_start(const char* path, char* to, size_t size) {
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return -1;
  const ssize_t length = read(file, to, size);
  const int error = errno;
  close(file);
  errno = error;
  return length;
}

}  // namespace

// No public header declares these.
extern "C" {

const char* ibv_get_sysfs_path() {
  static const std::string root = find_root();
  return root.c_str();
}

// Returns the length without a trailing newline; -1 also if the text and its terminating zero do not fit.
int ibv_read_sysfs_file(const char* dir, const char* file, char* to, size_t size) {
  char path[PATH_MAX];
  const int length_of_path = std::snprintf(path, sizeof path, "%s/%s", dir, file);
  if (length_of_path < 0 || static_cast<size_t>(length_of_path) >= sizeof path) {
    errno = ENAMETOOLONG;
    return -1;
  }
  if (size > INT_MAX) size = INT_MAX;
  ssize_t length = read_start(path, to, size);
  if (length <= 0) return static_cast<int>(length);
  if (to[length - 1] == '\n') {
    --length;
  } else if (static_cast<size_t>(length) == size) {
    errno = EOVERFLOW;
    return -1;
  }
  to[length] = '\0';
  return static_cast<int>(length);
}

// For a device in the private struct of rdma-core's providers, which this library never creates.
int ibv_read_ibdev_sysfs_file(char* /*to*/, size_t /*size*/, void* /*device*/, const char* /*format*/, ...) {
  errno = ENOSYS;
  return -1;
}

}  // extern "C"
