// Memory for many things of few sizes that mostly lie idle: blocks out of address space that is reserved and not backed,
// so that a block costs memory only from the first write to it, page by page. Blocks of about the same size lie side by
// side, which keeps pages that nobody has written to apart from those in use.
//
//   chunk, 64 MiB of addresses:  | owner | run of 2560-byte blocks | run of 768-byte blocks | ... not given out yet |
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "base/spinlock.hpp"

namespace roci {

// Any thread may call anything; a block belongs to whoever took it. Outlives its blocks.
class SparseArena {
 public:
  static constexpr size_t kChunk = size_t{64} << 20;  // bytes; one begins where its size divides the address
  static constexpr size_t kLargestBlock = kChunk / 4 * 3;  // of one block
  static constexpr size_t kAlignment = 64;

  // `most`: bytes of addresses that may be reserved, in whole chunks.
  explicit SparseArena(size_t most = SIZE_MAX) : most_(most) {}
  ~SparseArena();
  SparseArena(const SparseArena&) = delete;
  SparseArena& operator=(const SparseArena&) = delete;

  // A block of at least so many bytes, which hold anything. Null when the system gives no more addresses (`ulimit -v`,
  // vm.overcommit_memory=2), or `most` is reached.
  [[nodiscard]] void* take(size_t bytes);
  // To the arena it came from, with the size it was asked for by.
  static void give_back(void* block, size_t bytes);

  // The arena that a block was taken from.
  [[nodiscard]] static SparseArena& of(void* block);

  // Bytes of the blocks that are taken, and of the addresses reserved.
  [[nodiscard]] size_t taken() const;
  [[nodiscard]] size_t reserved() const;

  // What a block of so many bytes takes.
  [[nodiscard]] static size_t rounded(size_t bytes);

 private:
  // Blocks of one size: those given back, and the rest of the run they are cut from.
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
  mutable Spinlock lock_;  // of all below
  std::map<size_t, Size> sizes_;
  std::vector<std::byte*> chunks_;
  std::byte* next_ = nullptr;  // in the last chunk
  std::byte* end_ = nullptr;
  size_t taken_ = 0;
};

}  // namespace roci
