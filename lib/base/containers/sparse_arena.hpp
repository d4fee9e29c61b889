// Arena for many mostly idle objects of few sizes. Blocks come from reserved address space without backing memory, so a
// block uses memory, page by page, only after its first write. Blocks of similar size are adjacent, which separates
// pages that were never written from pages in use.
//
//   chunk, 64 MiB of addresses:  | owner | run of 2560-byte blocks | run of 768-byte blocks | ... not allocated yet |
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "base/os/spinlock.hpp"

namespace roci {

// All functions may be called by any thread; a block is owned by its user. The arena must outlive its blocks.
class SparseArena {
 public:
  static constexpr size_t kChunk = size_t{64} << 20;       // bytes; chunks are aligned to their size
  static constexpr size_t kLargestBlock = kChunk / 4 * 3;  // bytes
  static constexpr size_t kAlignment = 64;

  // `most`: maximum bytes of addresses that are reserved, in whole chunks.
  explicit SparseArena(size_t most = SIZE_MAX) : most_(most) {}
  ~SparseArena();
  SparseArena(const SparseArena&) = delete;
  SparseArena& operator=(const SparseArena&) = delete;

  // Allocates a block of at least `bytes`, uninitialized. Returns null if the system provides no more addresses
  // (`ulimit -v`, vm.overcommit_memory=2), or at the maximum.
  [[nodiscard]] void* take(size_t bytes);
  // Frees a block to its arena; `bytes` is the size passed to take().
  static void give_back(void* block, size_t bytes);

  // Arena from which a block was allocated.
  [[nodiscard]] static SparseArena& of(void* block);

  // Bytes of allocated blocks, and of reserved addresses.
  [[nodiscard]] size_t taken() const;
  [[nodiscard]] size_t reserved() const;

  // Size of a block that take(bytes) allocates.
  [[nodiscard]] static size_t rounded(size_t bytes);

 private:
  // Blocks of one size: the free list, and the rest of the current run.
  struct Size {
    std::vector<void*> free;
    std::byte* next = nullptr;
    std::byte* end = nullptr;
  };
  struct ChunkHead {
    SparseArena* owner;
  };
  std::byte* cut(size_t bytes);
  bool reserve_chunk();

  const size_t most_;
  mutable Spinlock lock_;  // protects all members below
  std::map<size_t, Size> sizes_;
  std::vector<std::byte*> chunks_;
  std::byte* next_ = nullptr;  // in the last chunk
  std::byte* end_ = nullptr;
  size_t taken_ = 0;
};

}  // namespace roci
