#include "device/config/network_key.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string_view>

namespace roci {
namespace {

constexpr unsigned kOfOthers = 077;  // permissions of the group and of other users

}  // namespace

Result<SipKey> read_network_key(const std::string& file) {
  const auto wrong = [&](const std::string& why, int code = EINVAL) {
    return fail("the network key file '" + file + "' " + why, code);
  };
  if (!file.starts_with('/')) return wrong("is not an absolute path");
  // Does not wait for the writer of a pipe.
  const int fd = open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) {
    const int code = errno;
    if (code == ELOOP) return wrong("is a symbolic link; specify the file itself", code);
    return wrong(std::string{"cannot be opened: "} + std::strerror(code), code);
  }
  struct stat found {};
  std::array<char, 64> text{};
  const bool has_state = fstat(fd, &found) == 0;
  const ssize_t length = has_state && S_ISREG(found.st_mode) ? read(fd, text.data(), text.size()) : 0;
  const int code = errno;
  close(fd);
  if (!has_state || length < 0) return wrong(std::string{"cannot be read: "} + std::strerror(code), code);
  if (!S_ISREG(found.st_mode)) return wrong("is not a regular file");
  if (found.st_uid != geteuid() && found.st_uid != 0)
    return wrong("belongs to another user; it must belong to the user of the process or to root", EPERM);
  if ((found.st_mode & kOfOthers) != 0) {
    std::array<char, 8> mode{};
    std::snprintf(mode.data(), mode.size(), "%04o", found.st_mode & 07777U);
    return wrong(std::string{"has mode "} + mode.data() + "; other users must not access it (chmod 600)",
                 EPERM);
  }
  std::string_view digits{text.data(), static_cast<size_t>(length)};
  if (digits.ends_with('\n')) digits.remove_suffix(1);
  auto key = parse_sip_key(digits);
  if (!key) return wrong("is invalid: " + key.error().message);
  if (*key == SipKey{}) return wrong("is invalid: all digits are 0");
  return key;
}

}  // namespace roci
