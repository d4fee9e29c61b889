#include "net/runtime_folder.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <system_error>

#include "base/os/private_folder.hpp"

namespace roci {
namespace {

constexpr size_t kMaxName = 48;

std::string variable(const char* name) {
  const char* value = secure_getenv(name);
  return value == nullptr ? "" : value;
}

// Creates the folder, whose parent must exist, and checks that other users cannot change or replace it.
Result<std::filesystem::path> private_folder(const std::filesystem::path& folder) {
  const auto made = PrivateFolder::create(folder);
  if (made) return made->path();
  return fail("the runtime folder " + made.error().message + "; set ROCI_RUNTIME to use another one",
              made.error().code);
}

bool belongs_to_user(const std::string& folder) {
  struct stat found {};
  return stat(folder.c_str(), &found) == 0 && found.st_uid == geteuid();
}

}  // namespace

Result<std::filesystem::path> runtime_folder() {
  if (const std::string given = variable("ROCI_RUNTIME"); !given.empty()) return private_folder(given);
  // First for root: with the environment of another user (sudo -E, su), XDG_RUNTIME_DIR is that user's folder.
  if (geteuid() == 0) {
    if (auto folder = private_folder("/run/rocinante")) return folder;
  }
  if (const std::string base = variable("XDG_RUNTIME_DIR"); base.starts_with('/') && belongs_to_user(base)) {
    if (auto folder = private_folder(std::filesystem::path{base} / "rocinante")) return folder;
  }
  return private_folder("/tmp/rocinante-" + std::to_string(geteuid()));
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
