#include "switch/mac_table.hpp"

#include <algorithm>
#include <bit>

#include "base/rng.hpp"

namespace roci {

MacTable::MacTable(uint32_t size, Nanos ageing)
    : size_(std::max(size, 1U)), ageing_(ageing), salt_(os_random() | 1), entries_(size_) {
  const uint64_t slots = std::bit_ceil(uint64_t{size_} * 2);
  slots_.assign(slots, kNone);
  shift_ = 64U - static_cast<unsigned>(std::countr_zero(slots));
  for (uint32_t i = size_; i > 0; --i) free_.push_back(i - 1);
}

MacTable::Learned MacTable::learn(uint16_t vlan, const MacAddress& mac, uint16_t port, Nanos now) {
  const uint64_t key = key_of(vlan, mac);
  if (const uint32_t known = find_entry(key); known != kNone) {
    Entry& entry = entries_[known];
    const bool moved = entry.port != port;
    const bool was_old = is_old(entry, now);
    entry.port = port;
    entry.heard = now;
    if (known != newest_) {
      unlink(known);
      to_newest(known);
    }
    if (was_old) return Learned::kNew;
    return moved ? Learned::kMoved : Learned::kKnown;
  }
  while (oldest_ != kNone && is_old(entries_[oldest_], now)) forget(oldest_);
  if (free_.empty()) return Learned::kFull;

  const uint32_t index = free_.back();
  free_.pop_back();
  auto slot = home_of(key);
  const auto mask = static_cast<uint32_t>(slots_.size() - 1);
  while (slots_[slot] != kNone) slot = (slot + 1) & mask;
  slots_[slot] = index;
  entries_[index] = {.key = key, .heard = now, .slot = slot, .port = port};
  to_newest(index);
  ++used_;
  return Learned::kNew;
}

std::optional<uint16_t> MacTable::find(uint16_t vlan, const MacAddress& mac, Nanos now) const {
  const uint32_t index = find_entry(key_of(vlan, mac));
  if (index == kNone || is_old(entries_[index], now)) return std::nullopt;
  return entries_[index].port;
}

uint64_t MacTable::key_of(uint16_t vlan, const MacAddress& mac) {
  uint64_t key = vlan;
  for (const uint8_t byte : mac.bytes) key = key << 8 | byte;
  return key;
}

uint32_t MacTable::home_of(uint64_t key) const {
  uint64_t h = key * salt_;
  h ^= h >> 32;
  h *= 0x9e3779b97f4a7c15;  // 2^64 / golden ratio: spreads into the top bits
  return static_cast<uint32_t>(h >> shift_);
}

uint32_t MacTable::find_entry(uint64_t key) const {
  const auto mask = static_cast<uint32_t>(slots_.size() - 1);
  for (uint32_t slot = home_of(key); slots_[slot] != kNone; slot = (slot + 1) & mask) {
    if (entries_[slots_[slot]].key == key) return slots_[slot];
  }
  return kNone;
}

void MacTable::to_newest(uint32_t index) {
  Entry& entry = entries_[index];
  entry.older = newest_;
  entry.newer = kNone;
  (newest_ == kNone ? oldest_ : entries_[newest_].newer) = index;
  newest_ = index;
}

void MacTable::unlink(uint32_t index) {
  const Entry& entry = entries_[index];
  (entry.older == kNone ? oldest_ : entries_[entry.older].newer) = entry.newer;
  (entry.newer == kNone ? newest_ : entries_[entry.newer].older) = entry.older;
}

// Closes the gap in the run of slots (Knuth 6.4 algorithm R), so that no tombstones pile up.
void MacTable::forget(uint32_t index) {
  unlink(index);
  const auto mask = static_cast<uint32_t>(slots_.size() - 1);
  uint32_t gap = entries_[index].slot;
  for (uint32_t slot = (gap + 1) & mask; slots_[slot] != kNone; slot = (slot + 1) & mask) {
    Entry& entry = entries_[slots_[slot]];
    const uint32_t home = home_of(entry.key);
    if (((slot - home) & mask) < ((slot - gap) & mask)) continue;  // its home lies behind the gap
    slots_[gap] = slots_[slot];
    entry.slot = gap;
    gap = slot;
  }
  slots_[gap] = kNone;
  free_.push_back(index);
  --used_;
}

}  // namespace roci
