#include "memory/mapped_range.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

namespace roci {
namespace {

std::string hex(uint64_t value) {
  std::array<char, 19> text{};
  std::snprintf(text.data(), text.size(), "0x%lx", value);
  return text.data();
}

Status not_mapped(uint64_t at) {
  return fail("memory region: nothing is mapped at " + hex(at) + "; the whole region must be mapped", EFAULT);
}

Status not_reported() { return fail("memory region: the system does not report mappings", ENOTSUP); }

// Whether the mapping of the byte at `at` permits the access.
Status check_rights(uint64_t at, bool may_read, bool may_write, bool writable) {
  if (writable && !may_write) {
    return fail("memory region: the memory at " + hex(at) +
                    " is not writable; local write, remote write, remote atomic and window bind require it",
                EFAULT);
  }
  if (!writable && !may_read)
    return fail("memory region: the memory at " + hex(at) + " is not readable", EFAULT);
  return {};
}

// Descriptor of the list of mappings. Opened for each check: after a fork() it would still be the parent's list.
class Maps {
 public:
  Maps() : file_(open("/proc/self/maps", O_RDONLY | O_CLOEXEC)) {}
  ~Maps() {
    if (file_ >= 0) close(file_);
  }
  Maps(const Maps&) = delete;
  Maps& operator=(const Maps&) = delete;
  [[nodiscard]] int file() const { return file_; }

 private:
  int file_;
};

// Mapping of an address: PROCMAP_QUERY of linux/fs.h, which headers before 6.11 do not have.
struct MappingQuery {
  uint64_t size, flags, address;           // input
  uint64_t begin, end, rights, page_size;  // output, as are the rest
  uint64_t offset, inode;
  uint32_t major, minor, name_size, build_id_size;
  uint64_t name, build_id;
};
static_assert(sizeof(MappingQuery) == 104);
constexpr unsigned long kQueryMapping = _IOWR('f', 17, MappingQuery);  // PROCFS_IOCTL_MAGIC
constexpr uint64_t kMayRead = 1, kMayWrite = 2;

// Splits "7f12-7f34 rw-p ...". Returns false if the line has another form.
bool read_line(std::string_view line, uint64_t& begin, uint64_t& end, std::string_view& rights) {
  const size_t dash = line.find('-'), space = line.find(' ');
  if (dash == std::string_view::npos || space == std::string_view::npos || space < dash ||
      line.size() < space + 4)
    return false;
  const auto number = [line](size_t from, size_t to, uint64_t& value) {
    const auto [at, error] = std::from_chars(line.data() + from, line.data() + to, value, 16);
    return error == std::errc{} && at == line.data() + to;
  };
  rights = line.substr(space + 1, 3);
  return number(0, dash, begin) && number(dash + 1, space, end);
}

}  // namespace

Status mapped_range::query_kernel(uint64_t begin, uint64_t end, bool writable) {
  const Maps maps;
  if (maps.file() < 0) return not_reported();
  for (uint64_t at = begin; at < end;) {
    MappingQuery query{};
    query.size = sizeof query;
    query.address = at;
    if (ioctl(maps.file(), kQueryMapping, &query) != 0)
      return errno == ENOENT ? not_mapped(at) : not_reported();
    if (Status right =
            check_rights(at, (query.rights & kMayRead) != 0, (query.rights & kMayWrite) != 0, writable);
        !right)
      return right;
    at = query.end;
  }
  return {};
}

Status mapped_range::read_list(uint64_t begin, uint64_t end, bool writable) {
  const std::unique_ptr<FILE, int (*)(FILE*)> list(fopen("/proc/self/maps", "re"), fclose);
  if (list == nullptr) return not_reported();
  uint64_t at = begin;
  std::array<char, 4352> line{};  // a path of maximum length and the fields before it
  while (at < end && fgets(line.data(), line.size(), list.get()) != nullptr) {
    uint64_t first = 0, behind = 0;
    std::string_view rights;
    if (!read_line(line.data(), first, behind, rights)) return not_reported();
    if (behind <= at) continue;
    if (first > at) break;
    if (Status right = check_rights(at, rights[0] == 'r', rights[1] == 'w', writable); !right) return right;
    at = behind;
  }
  return at < end ? not_mapped(at) : Status{};
}

Status check_mapped(const void* address, uint64_t length, bool writable) {
  if (length == 0) return {};
  const auto begin = reinterpret_cast<uint64_t>(address);
  const uint64_t end = begin + length;
  Status status = mapped_range::query_kernel(begin, end, writable);
  if (!status && status.error().code == ENOTSUP) status = mapped_range::read_list(begin, end, writable);
  if (!status && status.error().code == ENOTSUP) return {};
  return status;
}

}  // namespace roci
