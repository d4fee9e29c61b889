#include "net/runtime_folder.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace roci {
namespace {

constexpr size_t kMaxName = 48;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// Creates the folder, whose parent must exist, and checks its owner and permissions.
Status make_private(const std::filesystem::path& folder) {
  const auto wrong = [&](const std::string& why, int code) {
    return fail(
        "the runtime folder '" + folder.string() + "' " + why + "; set ROCI_RUNTIME to use another one",
        code);
  };
  if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
    return wrong(std::string{"cannot be created: "} + std::strerror(errno), errno);
  struct stat found {};
  if (lstat(folder.c_str(), &found) != 0) return wrong(std::strerror(errno), errno);
  if (!S_ISDIR(found.st_mode)) return wrong("is not a folder", ENOTDIR);
  // Another user with write permission could replace sockets and lock files.
  if (found.st_uid != geteuid()) return wrong("belongs to another user", EPERM);
  if ((found.st_mode & 022) != 0) return wrong("is writable by other users; chmod 700 it", EPERM);
  return {};
}

}  // namespace

Result<std::filesystem::path> runtime_folder() {
  if (const std::string given = variable("ROCI_RUNTIME"); !given.empty()) {
    std::error_code error;
    const std::filesystem::path folder = std::filesystem::absolute(given, error);
    if (error) return fail("ROCI_RUNTIME '" + given + "': " + error.message(), error.value());
    ROCI_TRY(make_private(folder));
    return folder;
  }
  if (const std::string base = variable("XDG_RUNTIME_DIR"); base.starts_with('/')) {
    std::filesystem::path folder = std::filesystem::path{base} / "rocinante";
    if (make_private(folder)) return folder;
  }
  if (geteuid() == 0) {
    std::filesystem::path folder = "/run/rocinante";
    if (make_private(folder)) return folder;
  }
  std::filesystem::path folder = "/tmp/rocinante-" + std::to_string(geteuid());
  ROCI_TRY(make_private(folder));
  return folder;
}

Status check_net_name(std::string_view name) {
  const bool good = !name.empty() && name.size() <= kMaxName && name.front() != '.' && name.front() != '-' &&
                    std::all_of(name.begin(), name.end(), [](unsigned char c) {
                      return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
                    });
  if (good) return {};
  return fail("'" + std::string{name} + "' is not a valid network name; allowed are 1 to " +
              std::to_string(kMaxName) +
              " letters, digits, '-', '_' and '.', starting with a letter, a digit or '_'");
}

Result<std::filesystem::path> net_folder(std::string_view name) {
  ROCI_TRY(check_net_name(name));
  auto folder = runtime_folder();
  if (!folder) return folder;
  return *folder / name;
}

Result<std::filesystem::path> find_net(std::string_view name) {
  auto folder = net_folder(name);
  if (!folder) return folder;
  std::error_code ignored;
  if (std::filesystem::exists(*folder / kNetFile, ignored)) return folder;
  std::string known;
  if (const auto names = list_nets()) {
    for (const std::string& one : *names) known += (known.empty() ? "" : ", ") + one;
  }
  return fail("unknown network '" + std::string{name} + "'; " +
                  (known.empty() ? "none exists, roci-run creates networks" : "existing are: " + known),
              ENOENT);
}

Result<std::vector<std::string>> list_nets() {
  const auto folder = runtime_folder();
  if (!folder) return fail(folder.error());
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator{*folder, error}) {
    std::error_code ignored;
    if (std::filesystem::exists(entry.path() / kNetFile, ignored))
      names.push_back(entry.path().filename().string());
  }
  if (error) return fail("'" + folder->string() + "' cannot be read: " + error.message(), error.value());
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace roci
