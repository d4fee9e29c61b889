#include "base/sparse_arena.hpp"

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
constexpr size_t kRun = size_t{64} << 10;             // bytes cut at a time for blocks of one size
constexpr size_t kWorthReturning = size_t{64} << 10;  // blocks from here on give their pages back

// With AddressSanitizer a block that was given back is as forbidden as freed memory.
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

// Four sizes from one power of two to the next, so at most a quarter of a block's addresses is not asked for; whole pages
// from a page on, so that a large one can be given back to the system.
size_t SparseArena::rounded(size_t bytes) {
  bytes = std::max(bytes, kAlignment);
  const size_t step = std::max(kAlignment, std::bit_floor(bytes) / 4);
  return (bytes + step - 1) / step * step;
}

bool SparseArena::reserve_chunk() {
  if (chunks_.size() >= most_ / kChunk) return false;
  // Twice as much, to cut the aligned half out of it.
  void* mapped =
      mmap(nullptr, 2 * kChunk, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) return false;
  auto* begin = static_cast<std::byte*>(mapped);
  std::byte* chunk = chunk_of(begin + kChunk - 1);
  if (chunk != begin) munmap(begin, static_cast<size_t>(chunk - begin));
  munmap(chunk + kChunk, static_cast<size_t>(begin + kChunk - chunk));
  // Sparse by purpose: a huge page would back what nobody touches.
  madvise(chunk, kChunk, MADV_NOHUGEPAGE);
  chunks_.push_back(chunk);
  reinterpret_cast<ChunkHead*>(chunk)->owner = this;
  next_ = chunk + kPage;
  end_ = chunk + kChunk;
  return true;
}

// So many bytes of addresses that nobody has; what is left of a chunk that has not enough is lost.
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
  // Nothing is written to the block: it may never have been touched.
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
