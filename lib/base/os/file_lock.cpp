#include "base/os/file_lock.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

namespace roci {
namespace {

using FileId = std::pair<dev_t, ino_t>;

// Files that this process has locked.
struct Held {
  std::mutex mutex;
  pid_t pid = 0;
  std::set<FileId> files;

  // A child process has none of the locks. The mutex must be held.
  std::set<FileId>& mine() {
    if (pid != getpid()) {
      files.clear();
      pid = getpid();
    }
    return files;
  }
};

Held& held() {
  static Held instance;
  return instance;
}

FileId id_of(const struct stat& file) { return {file.st_dev, file.st_ino}; }

tl::unexpected<Error> cannot(const std::filesystem::path& file, const char* what) {
  return fail("'" + file.string() + "' cannot be " + what + ": " + std::strerror(errno), errno);
}

struct flock whole_file() {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  return lock;
}

}  // namespace

Result<std::optional<ProcessLock>> ProcessLock::take(const std::filesystem::path& file) {
  const std::lock_guard guard(held().mutex);
  std::set<FileId>& mine = held().mine();
  struct stat found {};
  if (stat(file.c_str(), &found) == 0 && mine.contains(id_of(found))) return std::nullopt;
  const int fd = open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return cannot(file, "opened");
  struct flock lock = whole_file();
  if (fcntl(fd, F_SETLK, &lock) != 0) {
    const bool taken = errno == EACCES || errno == EAGAIN;
    const auto failed = cannot(file, "locked");
    close(fd);
    if (taken) return std::nullopt;
    return failed;
  }
  if (fstat(fd, &found) != 0) {
    const auto failed = cannot(file, "inspected");
    close(fd);
    return failed;
  }
  mine.insert(id_of(found));
  return std::optional{ProcessLock{fd, getpid()}};
}

Result<pid_t> ProcessLock::holder(const std::filesystem::path& file) {
  const std::lock_guard guard(held().mutex);
  struct stat found {};
  if (stat(file.c_str(), &found) != 0) {
    if (errno == ENOENT) return 0;
    return cannot(file, "inspected");
  }
  if (held().mine().contains(id_of(found))) return getpid();
  const int fd = open(file.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return cannot(file, "opened");
  struct flock lock = whole_file();
  const int result = fcntl(fd, F_GETLK, &lock);
  close(fd);
  if (result != 0) return cannot(file, "checked for a lock");
  if (lock.l_type == F_UNLCK) return 0;
  if (lock.l_pid > 0) return lock.l_pid;
  return fail("'" + file.string() + "' is locked by a process of another PID namespace", EXDEV);
}

ProcessLock::~ProcessLock() {
  if (fd_ < 0) return;
  // In a forked child the lock belongs to the parent; closing could release a lock that the child has taken itself.
  if (pid_ != getpid()) return;
  const std::lock_guard guard(held().mutex);
  struct stat found {};
  if (fstat(fd_, &found) == 0) held().mine().erase(id_of(found));
  close(fd_);
}

Result<std::optional<SharedLock>> SharedLock::take(const std::filesystem::path& file) {
  const int fd = open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return cannot(file, "opened");
  if (flock(fd, LOCK_EX | LOCK_NB) == 0) return std::optional{SharedLock{fd}};
  const bool taken = errno == EWOULDBLOCK;
  const auto failed = cannot(file, "locked");
  close(fd);
  if (taken) return std::nullopt;
  return failed;
}

Result<SharedLock> SharedLock::wait(const std::filesystem::path& file, std::chrono::nanoseconds limit) {
  constexpr std::chrono::milliseconds kStep{1};
  const auto end = std::chrono::steady_clock::now() + limit;
  for (;;) {
    auto lock = take(file);
    if (!lock) return fail(lock.error());
    if (*lock) return std::move(**lock);
    if (std::chrono::steady_clock::now() >= end)
      return fail("'" + file.string() + "' is locked by another process for " +
                      std::to_string(limit / std::chrono::seconds{1}) + " s",
                  ETIMEDOUT);
    std::this_thread::sleep_for(kStep);
  }
}

Result<bool> SharedLock::is_taken(const std::filesystem::path& file) {
  const int fd = open(file.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) {
    if (errno == ENOENT) return false;
    return cannot(file, "opened");
  }
  const int code = flock(fd, LOCK_SH | LOCK_NB) == 0 ? 0 : errno;
  close(fd);
  errno = code;
  if (code != 0 && code != EWOULDBLOCK) return cannot(file, "checked for a lock");
  return code != 0;
}

SharedLock::~SharedLock() {
  if (fd_ >= 0) close(fd_);
}

}  // namespace roci
