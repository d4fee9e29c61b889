// Table of entries that the switch learns from frames, with expiry. Its size is bounded: a full table removes expired
// entries and otherwise learns nothing, so a flood of forged frames cannot evict valid entries.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "base/rng.hpp"
#include "base/types.hpp"

namespace roci {

// Hash table with linear probing. A list links the entries in the order in which they were last seen, so expired
// entries are at its front. Hash()(key, salt) must spread keys into the top bits. The salt is random, so that senders
// cannot choose colliding keys. Owned by one thread.
template <class Key, class Value, class Hash>
class AgeingTable {
 public:
  enum class Learned : uint8_t { kNew, kKnown, kFull };
  // Result of update(). `value` is the stored value for a known key, to be set by the caller for a new one, and null if
  // the table is full.
  struct Update {
    Learned learned;
    Value* value;
  };

  // An entry expires `ageing` after the last update() for its key; kNever: never. A table of size 0 learns nothing.
  AgeingTable(uint32_t size, Nanos ageing) : ageing_(ageing), salt_(os_random() | 1), entries_(size) {
    const uint64_t slots = std::bit_ceil(uint64_t{size} * 2 + (size == 0 ? 2 : 0));
    slots_.assign(slots, kNone);
    shift_ = 64U - static_cast<unsigned>(std::countr_zero(slots));
    free_.reserve(size);
    for (uint32_t i = size; i > 0; --i) free_.push_back(i - 1);
  }

  // Inlined into the per-frame path; GCC would emit a call. The rare part is in add().
  // `removed` is called with the value of each expired entry that is removed.
  template <class Removed>
  [[gnu::always_inline]] Update update(const Key& key, Nanos now, const Removed& removed) {
    if (const uint32_t known = find_entry(key); known != kNone) {
      Entry& entry = entries_[known];
      const bool was_expired = is_expired(entry, now);
      const bool again = entry.updated == now;  // all newer entries have the same time: no move required
      entry.updated = now;
      if (was_expired) entry.announced = kNeverAnnounced;
      last_ = known;
      if (!again && known != newest_) {
        unlink(known);
        to_newest(known);
      }
      return {was_expired ? Learned::kNew : Learned::kKnown, &entry.value};
    }
    return add(key, now, removed);
  }
  [[gnu::always_inline]] Update update(const Key& key, Nanos now) {
    return update(key, now, [](const Value&) {});
  }
  // Removes the entry of the last update(), which must not have returned kFull.
  void discard_last() {
    remove(last_);
    last_ = kNone;
  }

  // For owners of copies of this table: whether the copies need the entry of the last update(), because it is new or
  // changed, or was announced more than ageing / kAnnouncements ago. announced() records an announcement, change() requests one.
  [[nodiscard]] bool needs_announcement(Nanos now) const {
    return last_ != kNone && now - entries_[last_].announced >= ageing_ / kAnnouncements;
  }
  void announced(Nanos now) { entries_[last_].announced = now; }
  void change() { entries_[last_].announced = kNeverAnnounced; }

  // Returns null for an unknown or expired key. Valid until the next update().
  [[nodiscard]] const Value* find(const Key& key, Nanos now) const {
    const uint32_t index = find_entry(key);
    return index == kNone || is_expired(entries_[index], now) ? nullptr : &entries_[index].value;
  }

  // Number of entries, including expired ones that are not removed yet.
  [[nodiscard]] uint32_t size() const { return used_; }
  [[nodiscard]] uint32_t capacity() const { return static_cast<uint32_t>(entries_.size()); }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  static constexpr int kAnnouncements = 4;  // announcements of an entry per `ageing`
  static constexpr Nanos kNeverAnnounced{INT64_MIN / 2};
  struct Entry {
    Key key{};
    Value value{};
    Nanos updated{0};
    Nanos announced{kNeverAnnounced};
    uint32_t older = kNone, newer = kNone;
    uint32_t slot = 0;  // index in slots_ that refers to this entry
  };

  [[nodiscard]] uint32_t mask() const { return static_cast<uint32_t>(slots_.size() - 1); }
  [[nodiscard]] uint32_t next(uint32_t slot) const { return (slot + 1) & mask(); }
  [[nodiscard]] uint32_t home_of(const Key& key) const {
    return static_cast<uint32_t>(Hash()(key, salt_) >> shift_);
  }
  [[nodiscard]] bool is_expired(const Entry& entry, Nanos now) const {
    return now - entry.updated >= ageing_;
  }
  [[nodiscard]] uint32_t find_entry(const Key& key) const {
    for (uint32_t slot = home_of(key); slots_[slot] != kNone; slot = next(slot)) {
      if (entries_[slots_[slot]].key == key) return slots_[slot];
    }
    return kNone;
  }
  // Adds a key that is not in the table.
  template <class Removed>
  Update add(const Key& key, Nanos now, const Removed& removed) {
    while (oldest_ != kNone && is_expired(entries_[oldest_], now)) {
      removed(entries_[oldest_].value);
      remove(oldest_);
    }
    last_ = kNone;
    if (free_.empty()) return {Learned::kFull, nullptr};

    const uint32_t index = free_.back();
    free_.pop_back();
    uint32_t slot = home_of(key);
    while (slots_[slot] != kNone) slot = next(slot);
    slots_[slot] = index;
    entries_[index] = Entry{.key = key, .updated = now, .slot = slot};
    to_newest(index);
    ++used_;
    last_ = index;
    return {Learned::kNew, &entries_[index].value};
  }
  void to_newest(uint32_t index) {
    Entry& entry = entries_[index];
    entry.older = newest_;
    entry.newer = kNone;
    (newest_ == kNone ? oldest_ : entries_[newest_].newer) = index;
    newest_ = index;
  }
  void unlink(uint32_t index) {
    const Entry& entry = entries_[index];
    (entry.older == kNone ? oldest_ : entries_[entry.older].newer) = entry.newer;
    (entry.newer == kNone ? newest_ : entries_[entry.newer].older) = entry.older;
  }
  // Closes the gap in the probe sequence (Knuth 6.4 algorithm R), so that no tombstones accumulate.
  void remove(uint32_t index) {
    unlink(index);
    uint32_t gap = entries_[index].slot;
    for (uint32_t slot = next(gap); slots_[slot] != kNone; slot = next(slot)) {
      Entry& entry = entries_[slots_[slot]];
      const uint32_t home = home_of(entry.key);
      if (((slot - home) & mask()) < ((slot - gap) & mask())) continue;  // its home slot is after the gap
      slots_[gap] = slots_[slot];
      entry.slot = gap;
      gap = slot;
    }
    slots_[gap] = kNone;
    free_.push_back(index);
    --used_;
  }

  Nanos ageing_;
  uint64_t salt_;
  unsigned shift_ = 0;           // of the hash, to an index of slots_
  std::vector<uint32_t> slots_;  // at most half full
  std::vector<Entry> entries_;
  std::vector<uint32_t> free_;
  uint32_t oldest_ = kNone, newest_ = kNone;
  uint32_t last_ = kNone;  // entry of the last update()
  uint32_t used_ = 0;
};

}  // namespace roci
