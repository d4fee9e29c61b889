#include "port/dpdk/buffer_memory.hpp"

#include <sys/mman.h>

#include <atomic>

namespace roci {
namespace {

constexpr size_t kHuge = size_t{2} << 20;
constexpr size_t kPage = 4096;

std::atomic<uint64_t> bytes_left{0};

bool spend(uint64_t bytes) {
  uint64_t have = bytes_left.load();
  do {
    if (have < bytes) return false;
  } while (!bytes_left.compare_exchange_weak(have, have - bytes));
  return true;
}

size_t whole_pages(size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

}  // namespace

void allow_buffer_memory(uint64_t bytes) { bytes_left = bytes; }

void* map_buffer_memory(size_t bytes) {
  bytes = whole_pages(bytes);
  if (!spend(bytes)) return nullptr;
  const size_t slack = bytes >= kHuge ? kHuge : 0;
  void* mapped = mmap(nullptr, bytes + slack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) {
    bytes_left += bytes;
    return nullptr;
  }
  if (slack == 0) return mapped;
  auto* begin = static_cast<std::byte*>(mapped);
  const size_t before = (kHuge - reinterpret_cast<uintptr_t>(begin) % kHuge) % kHuge;
  if (before > 0) munmap(begin, before);
  munmap(begin + before + bytes, slack - before);
  // A pool writes to all of its buffers at once, so huge pages waste nothing. The part after the last whole huge page
  // keeps small pages. madvise() fails on kernels without transparent huge pages, and all pages are then small.
  madvise(begin + before, bytes / kHuge * kHuge, MADV_HUGEPAGE);
  return begin + before;
}

void unmap_buffer_memory(void* memory, size_t bytes) {
  bytes = whole_pages(bytes);
  munmap(memory, bytes);
  bytes_left += bytes;
}

}  // namespace roci
