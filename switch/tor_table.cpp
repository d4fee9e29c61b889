#include "switch/tor_table.hpp"

#include <bit>

#include "base/rng.hpp"

namespace roci {

CnmLink TorFlow::answer(const MacAddress& own) const {
  constexpr uint16_t kVlanId = 0x0fff;
  CnmLink link{source, own, tags};
  for (unsigned i = 0; i < link.tags.vlan_count; ++i) {
    uint16_t& tci = link.tags.vlan[i].tci;
    tci = static_cast<uint16_t>((tci & kVlanId) | kCnmTransmitPriority << 13);
  }
  return link;
}

TorTable::TorTable(uint32_t size, Nanos ageing) : ageing_(ageing), salt_(os_random() | 1), entries_(size) {
  const uint64_t slots = std::bit_ceil(uint64_t{size} * 2 + 2);
  slots_.assign(slots, kNone);
  shift_ = 64U - static_cast<unsigned>(std::countr_zero(slots));
  free_.reserve(size);
  for (uint32_t i = size; i > 0; --i) free_.push_back(i - 1);
}

TorTable::Learned TorTable::learn(const FiveTuple& key, const TorFlow& flow, Nanos now) {
  if (const uint32_t known = find_entry(key); known != kNone) {
    Entry& entry = entries_[known];
    const bool was_old = is_old(entry, now);
    entry.flow = flow;
    entry.heard = now;
    if (known != newest_) {
      unlink(known);
      to_newest(known);
    }
    return was_old ? Learned::kNew : Learned::kKnown;
  }
  while (oldest_ != kNone && is_old(entries_[oldest_], now)) forget(oldest_);
  if (free_.empty()) return Learned::kFull;

  const uint32_t index = free_.back();
  free_.pop_back();
  uint32_t slot = home_of(key);
  const auto mask = static_cast<uint32_t>(slots_.size() - 1);
  while (slots_[slot] != kNone) slot = (slot + 1) & mask;
  slots_[slot] = index;
  entries_[index] = {.key = key, .flow = flow, .heard = now, .slot = slot};
  to_newest(index);
  ++used_;
  return Learned::kNew;
}

const TorFlow* TorTable::find(const FiveTuple& key, Nanos now) const {
  const uint32_t index = find_entry(key);
  if (index == kNone || is_old(entries_[index], now)) return nullptr;
  return &entries_[index].flow;
}

uint32_t TorTable::home_of(const FiveTuple& key) const {
  uint64_t h = salt_;
  const auto mix = [&h](uint64_t word) {
    h = (h ^ word) * 0x9e3779b97f4a7c15;  // 2^64 / golden ratio: spreads into the top bits
    h ^= h >> 32;
  };
  for (const IpAddress* address : {&key.source, &key.destination}) {
    const auto words = std::bit_cast<std::array<uint64_t, 2>>(address->bytes);
    mix(words[0]);
    mix(words[1]);
  }
  mix(static_cast<uint64_t>(key.source_port) << 32 | static_cast<uint64_t>(key.destination_port) << 16 |
      key.protocol);
  return static_cast<uint32_t>(h * salt_ >> shift_);
}

uint32_t TorTable::find_entry(const FiveTuple& key) const {
  const auto mask = static_cast<uint32_t>(slots_.size() - 1);
  for (uint32_t slot = home_of(key); slots_[slot] != kNone; slot = (slot + 1) & mask) {
    if (entries_[slots_[slot]].key == key) return slots_[slot];
  }
  return kNone;
}

void TorTable::to_newest(uint32_t index) {
  Entry& entry = entries_[index];
  entry.older = newest_;
  entry.newer = kNone;
  (newest_ == kNone ? oldest_ : entries_[newest_].newer) = index;
  newest_ = index;
}

void TorTable::unlink(uint32_t index) {
  const Entry& entry = entries_[index];
  (entry.older == kNone ? oldest_ : entries_[entry.older].newer) = entry.newer;
  (entry.newer == kNone ? newest_ : entries_[entry.newer].older) = entry.older;
}

// Closes the gap in the run of slots (Knuth 6.4 algorithm R), so that no tombstones pile up.
void TorTable::forget(uint32_t index) {
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
