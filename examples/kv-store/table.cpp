#include "table.hpp"

#include <algorithm>
#include <atomic>

namespace kv {
namespace {

bool is_key(std::string_view key) { return !key.empty() && key.size() <= kMaxKey; }

// A seqlock write: the odd version is stored before the first change, the even one after the last.
void write(Entry& entry, std::string_view key, std::string_view value) {
  const std::atomic_ref<uint64_t> version(entry.version);
  const uint64_t before = version.load(std::memory_order_relaxed);
  version.store(before + 1, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  std::copy(key.begin(), key.end(), entry.key.begin());
  std::copy(value.begin(), value.end(), entry.value.begin());
  entry.key_length = static_cast<uint16_t>(key.size());
  entry.value_length = static_cast<uint32_t>(value.size());
  Entry ends_as = entry;
  ends_as.version = before + 2;
  entry.checksum = checksum_of(ends_as);
  version.store(before + 2, std::memory_order_release);
}

}  // namespace

Entry* Table::find(std::string_view key) {
  for (const uint64_t bucket : buckets_of(key, buckets_.size())) {
    for (Entry& entry : buckets_[bucket].entries) {
      if (std::string_view(entry.key.data(), entry.key_length) == key) return &entry;
    }
  }
  return nullptr;
}

// Selects the bucket with more free entries, which reduces the number of keys for which both are full.
Entry* Table::free_place(std::string_view key) {
  Entry* place = nullptr;
  ptrdiff_t most = 0;
  for (const uint64_t bucket : buckets_of(key, buckets_.size())) {
    auto& entries = buckets_[bucket].entries;
    const auto is_free = [](const Entry& entry) { return entry.key_length == 0; };
    const ptrdiff_t count = std::count_if(entries.begin(), entries.end(), is_free);
    if (count > most) {
      most = count;
      place = &*std::find_if(entries.begin(), entries.end(), is_free);
    }
  }
  return place;
}

Status Table::put(std::string_view key, std::string_view value) {
  if (!is_key(key)) return Status::kBadKey;
  if (value.size() > kMaxValue) return Status::kBadValue;
  Entry* entry = find(key);
  if (entry == nullptr) {
    entry = free_place(key);
    if (entry == nullptr) return Status::kFull;
    ++size_;
  }
  write(*entry, key, value);
  return Status::kOk;
}

Status Table::remove(std::string_view key) {
  if (!is_key(key)) return Status::kBadKey;
  Entry* entry = find(key);
  if (entry == nullptr) return Status::kMissing;
  write(*entry, {}, {});
  --size_;
  return Status::kOk;
}

}  // namespace kv
