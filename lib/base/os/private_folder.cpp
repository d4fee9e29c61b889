#include "base/os/private_folder.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace roci {
namespace {

constexpr size_t kMaxFile = size_t{16} << 20;
constexpr int kFolderFlags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

tl::unexpected<Error> cannot(const std::filesystem::path& path, const char* what, int code) {
  return fail("'" + path.string() + "' cannot be " + what + ": " + std::strerror(code), code);
}

// Folders above the one that is opened.
class Ancestors {
 public:
  // Checks the folder with this state, which is directly below the previous one.
  Status enter(const std::filesystem::path& path, const struct stat& state) {
    if (!has_root_) root_owner_ = state.st_uid;
    has_root_ = true;
    if (!trusts(state.st_uid)) {
      return fail("'" + path.string() + "' belongs to another user (" + std::to_string(state.st_uid) +
                      "); that user can replace the folders in it",
                  EPERM);
    }
    const bool others_write = (state.st_mode & 022) != 0 && (state.st_mode & S_ISVTX) == 0;
    if (others_write && !hidden_) {
      return fail("'" + path.string() + "' is writable by other users; they can replace the folders in it",
                  EPERM);
    }
    hidden_ |= (state.st_mode & 011) == 0;
    return {};
  }
  [[nodiscard]] bool trusts(uid_t owner) const {
    return owner == 0 || owner == geteuid() || owner == root_owner_;
  }

 private:
  bool has_root_ = false;
  bool hidden_ = false;  // group and others cannot reach the folders below
  uid_t root_owner_ = 0;
};

enum class Owner : uint8_t { kSelf, kSelfOrRoot };

struct OpenFolder {
  std::filesystem::path path;
  FileDescriptor fd;
};

Result<OpenFolder> open_folder(const std::filesystem::path& folder, Owner owner, bool create) {
  std::error_code error;
  std::filesystem::path full = std::filesystem::absolute(folder, error);
  if (!full.has_filename()) full = full.parent_path();  // "/x/"
  const std::string name = full.filename().string();
  // Links above the folder are permitted: the folders that they lead to are checked.
  const std::filesystem::path parent =
      error ? std::filesystem::path{} : std::filesystem::canonical(full.parent_path(), error);
  if (error) return cannot(folder, "opened", error.value());
  Ancestors ancestors;
  FileDescriptor at{::open("/", kFolderFlags)};
  std::filesystem::path path = "/";
  struct stat state {};
  const auto enter = [&]() -> Status {
    if (at.get() < 0 || fstat(at.get(), &state) != 0) return cannot(path, "opened", errno);
    return ancestors.enter(path, state).map_error([&](const Error& e) {
      return e.within("'" + folder.string() + "'");
    });
  };
  ROCI_TRY(enter());
  for (const std::filesystem::path& part : parent.relative_path()) {
    path /= part;
    at = FileDescriptor{openat(at.get(), part.c_str(), kFolderFlags)};
    ROCI_TRY(enter());
  }
  if (name.empty() || name == "." || name == "..")
    return fail("'" + folder.string() + "' does not end in the name of a folder");
  if (create && mkdirat(at.get(), name.c_str(), 0700) != 0 && errno != EEXIST)
    return cannot(folder, "created", errno);
  FileDescriptor found{openat(at.get(), name.c_str(), kFolderFlags)};
  if (found.get() < 0 || fstat(found.get(), &state) != 0) {
    if (errno == ENOTDIR || errno == ELOOP) return fail("'" + folder.string() + "' is not a folder", ENOTDIR);
    return cannot(folder, "opened", errno);
  }
  if (owner == Owner::kSelf ? state.st_uid != geteuid() : !ancestors.trusts(state.st_uid)) {
    return fail("'" + folder.string() + "' belongs to another user (" + std::to_string(state.st_uid) + ")",
                EPERM);
  }
  // Another user with write permission could replace sockets and lock files.
  if ((state.st_mode & 022) != 0)
    return fail("'" + folder.string() + "' is writable by other users; chmod 700 it", EPERM);
  return OpenFolder{parent / name, std::move(found)};
}

}  // namespace

FileDescriptor::~FileDescriptor() {
  if (fd_ >= 0) close(fd_);
}

Result<PrivateFolder> PrivateFolder::open(const std::filesystem::path& folder) {
  auto found = open_folder(folder, Owner::kSelf, false);
  if (!found) return fail(found.error());
  return PrivateFolder{std::move(found->path), std::move(found->fd)};
}

Result<PrivateFolder> PrivateFolder::create(const std::filesystem::path& folder) {
  auto found = open_folder(folder, Owner::kSelf, true);
  if (!found) return fail(found.error());
  return PrivateFolder{std::move(found->path), std::move(found->fd)};
}

Status check_protected_folder(const std::filesystem::path& folder) {
  const auto found = open_folder(folder, Owner::kSelfOrRoot, false);
  if (!found) return fail(found.error());
  return {};
}

Result<FileDescriptor> PrivateFolder::open_file(const std::string& name, int flags, mode_t mode) const {
  FileDescriptor file{openat(fd(), name.c_str(), flags | O_NOFOLLOW | O_CLOEXEC, mode)};
  if (file.get() < 0) return cannot(path_ / name, "opened", errno);
  return file;
}

bool PrivateFolder::contains(const std::string& name) const {
  return faccessat(fd(), name.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

Result<std::string> PrivateFolder::read(const std::string& name) const {
  // O_NONBLOCK: a FIFO is opened without waiting, and then rejected.
  auto file = open_file(name, O_RDONLY | O_NONBLOCK);
  if (!file) return fail(file.error());
  struct stat state {};
  if (fstat(file->get(), &state) != 0) return cannot(path_ / name, "read", errno);
  if (!S_ISREG(state.st_mode)) return fail("'" + (path_ / name).string() + "' is not a regular file", EINVAL);
  std::string text;
  std::array<char, 4096> part;
  for (;;) {
    const ssize_t length = ::read(file->get(), part.data(), part.size());
    if (length < 0 && errno == EINTR) continue;
    if (length < 0) return cannot(path_ / name, "read", errno);
    if (length == 0) return text;
    text.append(part.data(), static_cast<size_t>(length));
    if (text.size() > kMaxFile) return cannot(path_ / name, "read", EFBIG);
  }
}

Status PrivateFolder::replace(const std::string& name, const std::string& text) const {
  const std::string draft = name + "." + std::to_string(getpid());
  remove(draft);  // of a killed process with the same id
  const auto failed = [&](int code) {
    remove(draft);
    return cannot(path_ / name, "written", code);
  };
  {
    auto file = open_file(draft, O_WRONLY | O_CREAT | O_EXCL);
    if (!file) return cannot(path_ / name, "written", file.error().code);
    for (size_t at = 0; at < text.size();) {
      const ssize_t length = ::write(file->get(), text.data() + at, text.size() - at);
      if (length < 0 && errno == EINTR) continue;
      if (length <= 0) return failed(length < 0 ? errno : ENOSPC);
      at += static_cast<size_t>(length);
    }
  }
  if (!rename(draft, name)) return failed(errno);
  return {};
}

Status PrivateFolder::make_folder(const std::string& name) const {
  if (mkdirat(fd(), name.c_str(), 0700) != 0 && errno != EEXIST)
    return cannot(path_ / name, "created", errno);
  struct stat state {};
  if (fstatat(fd(), name.c_str(), &state, AT_SYMLINK_NOFOLLOW) != 0)
    return cannot(path_ / name, "opened", errno);
  if (!S_ISDIR(state.st_mode)) return fail("'" + (path_ / name).string() + "' is not a folder", ENOTDIR);
  if (state.st_uid != geteuid())
    return fail("'" + (path_ / name).string() + "' belongs to another user", EPERM);
  return {};
}

bool PrivateFolder::remove(const std::string& name) const { return unlinkat(fd(), name.c_str(), 0) == 0; }

bool PrivateFolder::rename(const std::string& from, const std::string& to) const {
  return renameat(fd(), from.c_str(), fd(), to.c_str()) == 0;
}

}  // namespace roci
