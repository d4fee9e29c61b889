// File locks that the kernel releases when a process exits for any reason.
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>

#include "base/result.hpp"

namespace roci {

// Lock of this process only. A child has it neither after fork() nor after exec(), so a slot becomes free when the
// process that took it exits, even if it has started other processes. These are fcntl() locks; a child would share an
// open file description lock. A process loses its fcntl() lock when it closes any descriptor of the file; therefore files
// that this process has locked are not opened again. May be called by any thread.
class ProcessLock {
 public:
  // Creates the file if it does not exist. Returns nullopt if the lock is held, also by this process.
  static Result<std::optional<ProcessLock>> take(const std::filesystem::path& file);
  // Process that holds the lock; 0 if it is free. EXDEV: a process of another PID namespace, without an id in this one.
  static Result<pid_t> holder(const std::filesystem::path& file);

  // For reading and writing the file. Closing it releases the lock.
  [[nodiscard]] int fd() const { return fd_; }

  ProcessLock(ProcessLock&& other) noexcept : fd_(other.fd_), pid_(other.pid_) { other.fd_ = -1; }
  ProcessLock& operator=(ProcessLock&& other) = delete;
  ProcessLock(const ProcessLock&) = delete;
  ProcessLock& operator=(const ProcessLock&) = delete;
  ~ProcessLock();

 private:
  ProcessLock(int fd, pid_t pid) : fd_(fd), pid_(pid) {}
  int fd_;
  pid_t pid_;  // process that took the lock
};

// Lock of an open file description (flock()). Children share it, also after exec() if they inherit the descriptor, and
// it is released when the last of them exits. The process that starts a server takes the lock, and the server holds it.
class SharedLock {
 public:
  // Returns nullopt if the lock is held.
  static Result<std::optional<SharedLock>> take(const std::filesystem::path& file);
  // The same, waiting for the lock. ETIMEDOUT after `limit`.
  static Result<SharedLock> wait(const std::filesystem::path& file, std::chrono::nanoseconds limit);
  // Whether the lock is held.
  static Result<bool> is_taken(const std::filesystem::path& file);

  SharedLock(SharedLock&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  SharedLock& operator=(SharedLock&& other) = delete;
  SharedLock(const SharedLock&) = delete;
  SharedLock& operator=(const SharedLock&) = delete;
  ~SharedLock();

  // For a child that shall inherit the lock; close-on-exec is set.
  [[nodiscard]] int fd() const { return fd_; }

 private:
  explicit SharedLock(int fd) : fd_(fd) {}
  int fd_;
};

}  // namespace roci
