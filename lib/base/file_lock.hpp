// Locks that the kernel takes back when a process dies, however it does.
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>

#include "base/result.hpp"

namespace roci {

// A lock of this process alone: a child has it neither after fork() nor after exec(), so a place is free again when the process
// that took it is gone, whatever it has started meanwhile. (fcntl's locks. Of those that belong to an open file a child would
// have a share.) Their trap, that a process loses one when it closes any descriptor of the file, is avoided here: files that
// this process has locked are not opened again. Any thread.
class ProcessLock {
 public:
  // Makes the file when it is not there. Nothing when somebody has the lock, this process included.
  static Result<std::optional<ProcessLock>> take(const std::filesystem::path& file);
  // Who has it; 0 when nobody has.
  static Result<pid_t> holder(const std::filesystem::path& file);

  // To read and write the file by; who closes it has lost the lock.
  [[nodiscard]] int fd() const { return fd_; }

  ProcessLock(ProcessLock&& other) noexcept : fd_(other.fd_), pid_(other.pid_) { other.fd_ = -1; }
  ProcessLock& operator=(ProcessLock&& other) = delete;
  ProcessLock(const ProcessLock&) = delete;
  ProcessLock& operator=(const ProcessLock&) = delete;
  ~ProcessLock();

 private:
  ProcessLock(int fd, pid_t pid) : fd_(fd), pid_(pid) {}
  int fd_;
  pid_t pid_;  // of the process that took it
};

// A lock that goes with an open file: children have a share of it, also after exec() when they are given the descriptor, and it
// is free when the last of them is gone (flock). So whoever starts a server takes it, and the server has it.
class SharedLock {
 public:
  // Nothing when somebody else has it.
  static Result<std::optional<SharedLock>> take(const std::filesystem::path& file);
  // The same, waiting for it. ETIMEDOUT after `limit`.
  static Result<SharedLock> wait(const std::filesystem::path& file, std::chrono::nanoseconds limit);
  // Whether somebody has it.
  static bool is_taken(const std::filesystem::path& file);

  SharedLock(SharedLock&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  SharedLock& operator=(SharedLock&& other) = delete;
  SharedLock(const SharedLock&) = delete;
  SharedLock& operator=(const SharedLock&) = delete;
  ~SharedLock();

  // For who is to have it too; closed at exec() unless it is told otherwise.
  [[nodiscard]] int fd() const { return fd_; }

 private:
  explicit SharedLock(int fd) : fd_(fd) {}
  int fd_;
};

}  // namespace roci
