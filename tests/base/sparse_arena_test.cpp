// Blocks of reserved addresses: disjoint, reusable, and without physical memory until they are written.
#include "base/containers/sparse_arena.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <vector>

#include "base/rng.hpp"

namespace roci {
namespace {

constexpr size_t kPage = 4096;

// Number of resident pages in [at, at + bytes).
size_t pages_with_memory(const void* at, size_t bytes) {
  const auto begin = reinterpret_cast<uintptr_t>(at) / kPage * kPage;
  const size_t pages = (reinterpret_cast<uintptr_t>(at) + bytes - begin + kPage - 1) / kPage;
  std::vector<unsigned char> map(pages);
  EXPECT_EQ(mincore(reinterpret_cast<void*>(begin), pages * kPage, map.data()), 0);
  return static_cast<size_t>(
      std::count_if(map.begin(), map.end(), [](auto page) { return (page & 1) != 0; }));
}

TEST(SparseArena, unwritten_blocks_use_no_memory) {
  SparseArena arena;
  constexpr size_t kBytes = 2048, kCount = 1000;
  std::vector<std::byte*> blocks;
  for (size_t i = 0; i < kCount; ++i) blocks.push_back(static_cast<std::byte*>(arena.take(kBytes)));
  size_t touched = 0;
  for (const std::byte* block : blocks) touched += pages_with_memory(block, kBytes);
  EXPECT_EQ(touched, 0U);
  *blocks[500] = std::byte{1};
  EXPECT_EQ(pages_with_memory(blocks[500], 1), 1U);
  EXPECT_EQ(arena.taken(), kCount * kBytes);
  // Returning a block does not write to it either.
  for (std::byte* block : blocks) SparseArena::give_back(block, kBytes);
  touched = 0;
  for (const std::byte* block : blocks) touched += pages_with_memory(block, 1);
  EXPECT_LE(touched, 2U);  // the written page, counted for each of its two blocks
  EXPECT_EQ(arena.taken(), 0U);
}

TEST(SparseArena, blocks_do_not_overlap_and_keep_their_contents) {
  SparseArena arena;
  Rng rng{7};
  struct Block {
    size_t bytes;
    unsigned char fill;
  };
  std::map<unsigned char*, Block> taken;
  for (int i = 0; i < 20'000; ++i) {
    if (taken.size() < 300 && (taken.empty() || rng.chance(0.55))) {
      const auto bytes =
          static_cast<size_t>(rng.chance(0.02) ? rng.between(1, 300'000) : rng.between(1, 5000));
      auto* block = static_cast<unsigned char*>(arena.take(bytes));
      ASSERT_NE(block, nullptr);
      ASSERT_EQ(reinterpret_cast<uintptr_t>(block) % SparseArena::kAlignment, 0U);
      ASSERT_EQ(&SparseArena::of(block), &arena);
      const auto fill = static_cast<unsigned char>(rng.below(256));
      std::memset(block, fill, bytes);
      const auto next = taken.lower_bound(block);
      if (next != taken.end()) {
        ASSERT_LE(block + SparseArena::rounded(bytes), next->first);
      }
      if (next != taken.begin()) {
        ASSERT_LE(std::prev(next)->first + std::prev(next)->second.bytes, block);
      }
      taken[block] = {bytes, fill};
    } else {
      auto at = std::next(taken.begin(), static_cast<ptrdiff_t>(rng.below(taken.size())));
      const Block block = at->second;
      ASSERT_TRUE(std::all_of(at->first, at->first + block.bytes, [&](auto b) { return b == block.fill; }));
      SparseArena::give_back(at->first, block.bytes);
      taken.erase(at);
    }
  }
  size_t sum = 0;
  for (const auto& [at, block] : taken) sum += SparseArena::rounded(block.bytes);
  EXPECT_EQ(arena.taken(), sum);
  EXPECT_EQ(arena.reserved(), SparseArena::kChunk) << "blocks are used again";
  for (const auto& [at, block] : taken) SparseArena::give_back(at, block.bytes);
}

TEST(SparseArena, rounding_wastes_at_most_a_quarter) {
  for (size_t bytes = 1; bytes < 200'000; bytes += bytes / 50 + 1) {
    const size_t rounded = SparseArena::rounded(bytes);
    EXPECT_GE(rounded, bytes);
    EXPECT_LE(rounded - bytes, std::max(bytes / 4, SparseArena::kAlignment - 1)) << bytes;
    EXPECT_EQ(SparseArena::rounded(rounded), rounded);
  }
}

TEST(SparseArena, rejects_requests_beyond_its_limit_or_the_largest_block) {
  SparseArena arena(SparseArena::kChunk);
  EXPECT_EQ(arena.take(SparseArena::kLargestBlock + 1), nullptr);
  void* first = arena.take(SparseArena::kLargestBlock);
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(arena.take(SparseArena::kLargestBlock), nullptr);
  void* small = arena.take(64);
  EXPECT_NE(small, nullptr) << "there is room for small ones still";
  SparseArena::give_back(first, SparseArena::kLargestBlock);
  EXPECT_EQ(arena.take(SparseArena::kLargestBlock), first);
}

TEST(SparseArena, returning_a_large_block_frees_its_memory) {
  SparseArena arena;
  constexpr size_t kBytes = 1 << 20;
  void* block = arena.take(kBytes);
  std::memset(block, 1, kBytes);
  EXPECT_EQ(pages_with_memory(block, kBytes), kBytes / kPage);
  SparseArena::give_back(block, kBytes);
  EXPECT_EQ(pages_with_memory(block, kBytes), 0U);
}

}  // namespace
}  // namespace roci
