#include "port/dpdk/hugepages.hpp"

#include <sys/mman.h>

#include <bit>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace roci {
namespace {

constexpr const char* kHugepagesFolder = "/sys/kernel/mm/hugepages";
constexpr const char* kPrefix = "hugepages-";  // hugepages-2048kB

uint64_t read_number(const std::filesystem::path& file) {
  uint64_t number = 0;
  std::ifstream(file) >> number;
  return number;
}

}  // namespace

FreeHugepages free_hugepages() {
  FreeHugepages found;
  std::error_code ignored;
  for (const auto& size : std::filesystem::directory_iterator(kHugepagesFolder, ignored)) {
    const std::string name = size.path().filename();
    if (!name.starts_with(kPrefix)) continue;
    const uint64_t bytes = std::strtoull(name.c_str() + std::strlen(kPrefix), nullptr, 10) << 10;
    // Reserved hugepages count as free, but are allocated to existing mappings.
    const uint64_t free = read_number(size.path() / "free_hugepages");
    const uint64_t reserved = read_number(size.path() / "resv_hugepages");
    if (bytes == 0 || free <= reserved) continue;
    found.bytes += (free - reserved) * bytes;
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | (std::countr_zero(bytes) << MAP_HUGE_SHIFT);
    void* page = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (page == MAP_FAILED) {
      found.refused =
          std::string("the system does not permit this process to use them (") + std::strerror(errno) + ")";
    } else {
      munmap(page, bytes);
    }
  }
  return found;
}

}  // namespace roci
