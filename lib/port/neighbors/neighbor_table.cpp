#include "port/neighbors/neighbor_table.hpp"

#include <algorithm>

namespace roci {

std::string_view neighbor_state_name(NeighborState state) {
  constexpr std::string_view kNames[] = {"free", "incomplete", "reachable", "probing", "failed", "permanent"};
  return kNames[static_cast<unsigned>(state)];
}

NeighborTable::NeighborTable(uint32_t capacity) : capacity_(std::max(capacity, 1U)) {}

Neighbor* NeighborTable::find(const IpAddress& address) {
  for (uint32_t i = bucket_of(address); i != kNone; i = slots_[i].next_in_bucket_) {
    if (slots_[i].address == address) return &slots_[i];
  }
  return nullptr;
}

Neighbor* NeighborTable::insert(const IpAddress& address) {
  uint32_t index = kNone;
  if (used_ < capacity()) {
    index = ++used_;
    ++size_;
    slots_.emplace_back();
    if (2 * size_t{used_} > buckets_.size()) double_buckets();
  } else {
    index = slots_[kNone].newer_;  // after the head: the oldest
    if (index == kNone) return nullptr;
    unlink(slots_[index]);
    remove_from_bucket(slots_[index]);
  }
  Neighbor& entry = slots_[index];
  const uint32_t version = entry.version + 1;
  entry = Neighbor{};
  entry.index_ = index;
  entry.address = address;
  entry.version = version;
  add_to_bucket(entry);
  link_newest(entry);
  return &entry;
}

void NeighborTable::add_to_bucket(Neighbor& entry) {
  uint32_t& bucket = bucket_of(entry.address);
  entry.next_in_bucket_ = bucket;
  bucket = entry.index_;
}

// The newest slot is not in a chain yet.
void NeighborTable::double_buckets() {
  buckets_.assign(2 * buckets_.size(), kNone);
  for (uint32_t index = 1; index < used_; ++index) add_to_bucket(slots_[index]);
}

void NeighborTable::touch(Neighbor& entry) {
  if (entry.holders > 0 || entry.pinned) return;
  unlink(entry);
  link_newest(entry);
}

void NeighborTable::pin(Neighbor& entry) {
  if (entry.pinned) return;
  if (entry.holders == 0) unlink(entry);
  entry.pinned = true;
}

void NeighborTable::hold(Neighbor& entry) {
  if (entry.holders++ == 0 && !entry.pinned) unlink(entry);
}

void NeighborTable::release(Neighbor& entry) {
  if (--entry.holders == 0 && !entry.pinned) link_newest(entry);
}

size_t NeighborTable::bucket_index(const IpAddress& address) const {
  return hash_(address) & (buckets_.size() - 1);
}

uint32_t NeighborTable::longest_chain() const {
  uint32_t longest = 0;
  for (const uint32_t first : buckets_) {
    uint32_t length = 0;
    for (uint32_t i = first; i != kNone; i = slots_[i].next_in_bucket_) ++length;
    longest = std::max(longest, length);
  }
  return longest;
}

void NeighborTable::link_newest(Neighbor& entry) {
  Neighbor& head = slots_[kNone];
  const uint32_t index = entry.index_;
  entry.older_ = head.older_;  // before the head: the newest
  entry.newer_ = kNone;
  slots_[head.older_].newer_ = index;
  head.older_ = index;
}

void NeighborTable::unlink(Neighbor& entry) {
  slots_[entry.older_].newer_ = entry.newer_;
  slots_[entry.newer_].older_ = entry.older_;
}

void NeighborTable::remove_from_bucket(const Neighbor& entry) {
  uint32_t* link = &bucket_of(entry.address);
  while (*link != entry.index_) link = &slots_[*link].next_in_bucket_;
  *link = entry.next_in_bucket_;
}

}  // namespace roci
