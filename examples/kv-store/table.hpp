// The server's side of the table. One thread calls it; clients read its memory at any time without asking.
#pragma once

#include <span>
#include <string_view>

#include "layout.hpp"

namespace kv {

// The answers to requests, as they go over the wire.
enum class Status : uint32_t {
  kOk,
  kMissing,
  kFull,
  kBadKey,
  kBadValue,
  kBadRequest,
};

class Table {
 public:
  // A power of two of buckets, all of them zero. They stay the caller's.
  explicit Table(std::span<Bucket> buckets) : buckets_(buckets) {}

  // kOk; kBadKey (empty or too long), kBadValue (too long), kFull (no place in either bucket of the key).
  Status put(std::string_view key, std::string_view value);
  // kOk, kMissing, or kBadKey.
  Status remove(std::string_view key);
  [[nodiscard]] size_t size() const { return size_; }

 private:
  [[nodiscard]] Entry* find(std::string_view key);
  [[nodiscard]] Entry* free_place(std::string_view key);

  std::span<Bucket> buckets_;
  size_t size_ = 0;
};

}  // namespace kv
