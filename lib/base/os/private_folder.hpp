// Folders that other users cannot change, for files that a process trusts: locks, sockets, descriptions of networks.
//
// A folder is protected if it belongs to the effective user (or root, where permitted), other users cannot write to it,
// and no other user can rename or replace it or a folder above it. That requires of each folder above it:
//   - it belongs to root, to the effective user, or to the owner of "/" (in a user namespace without root, root's files
//     belong to the overflow user);
//   - group and others cannot write to it, unless it has the sticky bit, as /tmp has.
// Write permission is not checked below a folder that group and others cannot search (mode 0700).
//
// All functions may be called by any thread.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <utility>

#include "base/result.hpp"

namespace roci {

// Owns a file descriptor.
class FileDescriptor {
 public:
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  ~FileDescriptor();

  [[nodiscard]] int get() const { return fd_; }  // -1: none

 private:
  int fd_;
};

// An open folder of the effective user that is protected (see above). Files are opened relative to its descriptor, and
// symbolic links are not followed: an existing link is an error (ELOOP).
class PrivateFolder {
 public:
  // EPERM if the folder is not protected; ENOTDIR if it is a link or another file.
  static Result<PrivateFolder> open(const std::filesystem::path& folder);
  // The same. Creates the folder with mode 0700 if it does not exist; its parent must exist.
  static Result<PrivateFolder> create(const std::filesystem::path& folder);

  // Absolute, without links in the folders above.
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] int fd() const { return fd_.get(); }

  // `name`: of a file in this folder, without '/'.
  [[nodiscard]] Result<FileDescriptor> open_file(const std::string& name, int flags,
                                                 mode_t mode = 0600) const;
  [[nodiscard]] bool contains(const std::string& name) const;
  // Content of a regular file of at most 16 MiB.
  [[nodiscard]] Result<std::string> read(const std::string& name) const;
  // Replaces the file atomically: a process that reads it gets the complete old or new text. Mode 0600.
  [[nodiscard]] Status replace(const std::string& name, const std::string& text) const;
  // Creates a sub-folder with mode 0700 if it does not exist. Fails if it exists and is not a folder of this user.
  [[nodiscard]] Status make_folder(const std::string& name) const;
  // Return false, with errno, if the file cannot be removed or renamed.
  bool remove(const std::string& name) const;
  bool rename(const std::string& from, const std::string& to) const;

 private:
  PrivateFolder(std::filesystem::path path, FileDescriptor fd) : path_(std::move(path)), fd_(std::move(fd)) {}

  std::filesystem::path path_;
  FileDescriptor fd_;
};

// Checks that the folder is protected, and belongs to the effective user or to root. The sticky bit does not protect
// it: other users must not be able to create files in it.
Status check_protected_folder(const std::filesystem::path& folder);

}  // namespace roci
