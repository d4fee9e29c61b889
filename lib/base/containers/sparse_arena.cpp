#include "base/containers/sparse_arena.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <mutex>
#include <utility>

#if defined(__SANITIZE_ADDRESS__)
#define ROCI_POISONS 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ROCI_POISONS 1
#endif
#endif
#ifdef ROCI_POISONS
#include <sanitizer/asan_interface.h>
#endif

namespace roci {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kRun = size_t{64} << 10;  // bytes that are cut at a time for blocks of one size
// Blocks of this size and above return their pages to the system when they are freed.
constexpr size_t kWorthReturning = size_t{64} << 10;

// With AddressSanitizer, freed blocks are poisoned as freed heap memory is.
void poison([[maybe_unused]] void* block, [[maybe_unused]] size_t bytes) {
#ifdef ROCI_POISONS
  ASAN_POISON_MEMORY_REGION(block, bytes);
#endif
}
void unpoison([[maybe_unused]] void* block, [[maybe_unused]] size_t bytes) {
#ifdef ROCI_POISONS
  ASAN_UNPOISON_MEMORY_REGION(block, bytes);
#endif
}

std::byte* chunk_of(const void* block) {
  return reinterpret_cast<std::byte*>(reinterpret_cast<uintptr_t>(block) & ~(SparseArena::kChunk - 1));
}

}  // namespace

SparseArena::~SparseArena() {
  for (std::byte* chunk : chunks_) {
    unpoison(chunk, kChunk);
    munmap(chunk, kChunk);
  }
}

// Four sizes between two powers of two, so at most a quarter of a block is unused. From a page on, sizes are whole
// pages, so that the pages of a large block can be returned to the system.
size_t SparseArena::rounded(size_t bytes) {
  bytes = std::max(bytes, kAlignment);
  const size_t step = std::max(kAlignment, std::bit_floor(bytes) / 4);
  return (bytes + step - 1) / step * step;
}

bool SparseArena::reserve_chunk() {
  if (chunks_.size() >= most_ / kChunk) return false;
  // Twice the size, to cut an aligned chunk out of it.
  void* mapped =
      mmap(nullptr, 2 * kChunk, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) return false;
  auto* begin = static_cast<std::byte*>(mapped);
  std::byte* chunk = chunk_of(begin + kChunk - 1);
  if (chunk != begin) munmap(begin, static_cast<size_t>(chunk - begin));
  munmap(chunk + kChunk, static_cast<size_t>(begin + kChunk - chunk));
  // Without huge pages: they would back pages that are never used.
  madvise(chunk, kChunk, MADV_NOHUGEPAGE);
  chunks_.push_back(chunk);
  reinterpret_cast<ChunkHead*>(chunk)->owner = this;
  next_ = chunk + kPage;
  end_ = chunk + kChunk;
  return true;
}

// Returns `bytes` of unused addresses. The rest of a chunk that is too small is not used.
std::byte* SparseArena::cut(size_t bytes) {
  if (static_cast<size_t>(end_ - next_) < bytes && !reserve_chunk()) return nullptr;
  return std::exchange(next_, next_ + bytes);
}

void* SparseArena::take(size_t bytes) {
  if (bytes > kLargestBlock) return nullptr;
  const size_t size = rounded(bytes);
  const std::scoped_lock guard(lock_);
  Size& blocks = sizes_[size];
  void* block = nullptr;
  if (!blocks.free.empty()) {
    block = blocks.free.back();
    blocks.free.pop_back();
    unpoison(block, size);
  } else {
    if (blocks.next == blocks.end) {
      const size_t run = std::max(kRun / size, size_t{1}) * size;
      blocks.next = cut((run + kPage - 1) / kPage * kPage);
      if (blocks.next == nullptr) {
        blocks.end = nullptr;
        return nullptr;
      }
      blocks.end = blocks.next + run;
    }
    block = std::exchange(blocks.next, blocks.next + size);
  }
  taken_ += size;
  return block;
}

SparseArena& SparseArena::of(void* block) { return *reinterpret_cast<ChunkHead*>(chunk_of(block))->owner; }

void SparseArena::give_back(void* block, size_t bytes) {
  const size_t size = rounded(bytes);
  SparseArena& arena = of(block);
  // Does not write to the block, which may never have been written.
  if (size >= kWorthReturning) madvise(block, size / kPage * kPage, MADV_DONTNEED);
  poison(block, size);
  const std::scoped_lock guard(arena.lock_);
  arena.sizes_[size].free.push_back(block);
  arena.taken_ -= size;
}

size_t SparseArena::taken() const {
  const std::scoped_lock guard(lock_);
  return taken_;
}

size_t SparseArena::reserved() const {
  const std::scoped_lock guard(lock_);
  return chunks_.size() * kChunk;
}

}  // namespace roci
