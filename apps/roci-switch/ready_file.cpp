#include "roci-switch/ready_file.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>
#include <system_error>
#include <utility>

namespace roci {
namespace {

std::filesystem::path beside(const std::filesystem::path& path, const char* ending) {
  return path.string() + ending;
}

std::filesystem::file_time_type time_of(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::last_write_time(path, ignored);
}

// Process id in a file that contains nothing else. An empty file, which a full disk may have left, counts as 0.
std::optional<uint64_t> only_process_id(const std::filesystem::path& path) {
  constexpr size_t kMaxDigits = 10;
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return {};
  std::ifstream in{path};
  std::string text(kMaxDigits + 2, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(in.gcount()));
  if (in.bad() || !in.eof()) return {};  // unreadable or longer
  if (text.ends_with('\n')) text.pop_back();
  if (text.find_first_not_of("0123456789") != std::string::npos) return {};
  return text.empty() ? 0 : std::stoull(text);
}

}  // namespace

ReadyFile::~ReadyFile() {
  // Another switch may have replaced the file.
  if (path_.empty() || only_process_id(path_) != static_cast<uint64_t>(getpid())) return;
  std::error_code ignored;
  std::filesystem::remove(path_, ignored);
}

Status ReadyFile::write(const std::filesystem::path& path) {
  std::error_code error;
  if (std::filesystem::exists(std::filesystem::symlink_status(path, error)) && !only_process_id(path))
    return fail("the ready file '" + path.string() +
                    "' exists and does not contain a process id; only a ready file is replaced",
                EEXIST);
  // Atomic: a process that waits for the file must not read an incomplete one.
  const auto draft = beside(path, ".tmp");
  errno = 0;
  std::ofstream out{draft};
  out << getpid() << '\n' << std::flush;
  if (!out) {
    const int code = errno != 0 ? errno : EIO;
    out.close();
    std::filesystem::remove(draft, error);
    return fail("the ready file '" + path.string() + "' cannot be written: " + std::strerror(code), code);
  }
  out.close();
  std::filesystem::rename(draft, path, error);
  if (error)
    return fail("the ready file '" + path.string() + "' cannot be written: " + error.message(),
                error.value());
  path_ = path;
  touched_ = time_of(path_);
  return {};
}

bool ReadyFile::was_touched() {
  if (path_.empty()) return false;
  const auto time = time_of(path_);
  return std::exchange(touched_, time) != time;
}

bool ReadyFile::withdraw() {
  if (path_.empty()) return true;
  // Renamed first: a touch before it is seen below, and one after it fails.
  const auto withdrawn = beside(path_, ".old");
  std::error_code ignored;
  std::filesystem::rename(path_, withdrawn, ignored);
  if (time_of(withdrawn) != touched_) {
    std::filesystem::rename(withdrawn, path_, ignored);
    return false;
  }
  std::filesystem::remove(withdrawn, ignored);
  path_.clear();
  return true;
}

}  // namespace roci
