#include "roci-switch/ready_file.hpp"

#include <unistd.h>

#include <fstream>
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

}  // namespace

ReadyFile::~ReadyFile() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove(path_, ignored);
}

Status ReadyFile::write(const std::filesystem::path& path) {
  // Atomic: a process that waits for the file must not read an incomplete one.
  const auto draft = beside(path, ".tmp");
  std::ofstream{draft} << getpid() << '\n';
  std::error_code error;
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
