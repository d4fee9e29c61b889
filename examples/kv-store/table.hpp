// The server's access to the table. Called by one thread; clients read the memory concurrently by RDMA READ.
#pragma once

#include <span>
#include <string_view>

#include "layout.hpp"

namespace kv {

// Results of requests, as sent to the client.
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
  // `buckets`: a power of two, zeroed, owned by the caller.
  explicit Table(std::span<Bucket> buckets) : buckets_(buckets) {}

  // Returns kOk, kBadKey (empty or too long), kBadValue (too long) or kFull (no free entry in both buckets).
  Status put(std::string_view key, std::string_view value);
  // Returns kOk, kMissing or kBadKey.
  Status remove(std::string_view key);
  [[nodiscard]] size_t size() const { return size_; }

 private:
  [[nodiscard]] Entry* find(std::string_view key);
  [[nodiscard]] Entry* free_place(std::string_view key);

  std::span<Bucket> buckets_;
  size_t size_ = 0;
};

}  // namespace kv
