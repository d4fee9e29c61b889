// The table in the server's memory, which clients read: an array of buckets with four entries. Each key has two
// possible buckets. One RDMA READ fetches a bucket without the server's CPU, so the server may change an entry during
// the READ. A reader detects this by two fields:
//
//   version    odd while the entry is being written, and different afterwards (a seqlock)
//   checksum   over all other fields including the version: a READ guarantees no order of its bytes, so old and new
//              bytes may be combined with either version
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

namespace kv {

inline constexpr size_t kMaxKey = 64;
inline constexpr size_t kMaxValue = 936;
inline constexpr size_t kEntriesPerBucket = 4;

// Both sides are little-endian and use the same build of this file; a product would define the byte order.
struct Entry {
  uint64_t version;  // 0: never used
  uint64_t checksum;
  uint32_t value_length;
  uint16_t key_length;  // 0: empty
  uint16_t unused;
  std::array<char, kMaxKey> key;
  std::array<char, kMaxValue> value;
};
static_assert(sizeof(Entry) == 1024 && std::is_trivially_copyable_v<Entry>);

struct Bucket {
  std::array<Entry, kEntriesPerBucket> entries;
};
static_assert(sizeof(Bucket) == 4096);

// FNV-1a with an additional start value.
inline uint64_t hash(std::span<const char> bytes, uint64_t start) {
  constexpr uint64_t kOffset = 0xcbf29ce484222325, kPrime = 0x100000001b3;
  uint64_t value = kOffset ^ start;
  for (const char byte : bytes) value = (value ^ static_cast<unsigned char>(byte)) * kPrime;
  return value;
}

// The two buckets of a key, which may be identical. `buckets` is a power of two.
inline std::array<uint64_t, 2> buckets_of(std::string_view key, uint64_t buckets) {
  const uint64_t first = hash(key, 0);
  const uint64_t second = hash(key, first | 1);
  return {(first ^ first >> 32) & (buckets - 1), (second ^ second >> 32) & (buckets - 1)};
}

// The expected checksum of an entry, whose lengths must be within their limits.
inline uint64_t checksum_of(const Entry& entry) {
  const std::array<uint64_t, 3> start{entry.version, entry.value_length, entry.key_length};
  uint64_t sum = hash({reinterpret_cast<const char*>(start.data()), sizeof start}, 0);
  sum = hash({entry.key.data(), entry.key_length}, sum);
  return hash({entry.value.data(), entry.value_length}, sum);
}

}  // namespace kv
