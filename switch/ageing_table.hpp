// What a switch has learnt from frames and forgets when it hears no more of it. Bounded: a full table forgets what is too
// old and otherwise learns nothing new, so that a flood of forgeries cannot drive out what is real.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "base/rng.hpp"
#include "base/types.hpp"

namespace roci {

// A hash table with linear probing, and a list through its entries in the order they were last heard of, so the ones
// to forget are always at its front. Hash()(key, salt) spreads keys into the top bits; the salt is unknown to whoever would
// choose keys that collide. Owned by one thread.
template <class Key, class Value, class Hash>
class AgeingTable {
 public:
  enum class Learned : uint8_t { kNew, kKnown, kFull };
  // What hear() found: the entry's value, which is what it was for a known key and for the caller to set; null when full.
  struct Heard {
    Learned learned;
    Value* value;
  };

  // `ageing` after a key was last heard of it is forgotten; kNever keeps all. Without a size the table learns nothing.
  AgeingTable(uint32_t size, Nanos ageing) : ageing_(ageing), salt_(os_random() | 1), entries_(size) {
    const uint64_t slots = std::bit_ceil(uint64_t{size} * 2 + (size == 0 ? 2 : 0));
    slots_.assign(slots, kNone);
    shift_ = 64U - static_cast<unsigned>(std::countr_zero(slots));
    free_.reserve(size);
    for (uint32_t i = size; i > 0; --i) free_.push_back(i - 1);
  }

  // Inlined where a frame passes, since GCC would make a call of it; what is rare is in add().
  [[gnu::always_inline]] Heard hear(const Key& key, Nanos now) {
    if (const uint32_t known = find_entry(key); known != kNone) {
      Entry& entry = entries_[known];
      const bool was_old = is_old(entry, now);
      const bool again = entry.heard == now;  // then so were all that are newer, and it may stay where it is
      entry.heard = now;
      if (was_old) entry.told = kUntold;
      last_ = known;
      if (!again && known != newest_) {
        unlink(known);
        to_newest(known);
      }
      return {was_old ? Learned::kNew : Learned::kKnown, &entry.value};
    }
    return add(key, now);
  }

  // For who keeps copies of this table: whether they are to be told of the entry that was last heard of, since it is new or
  // it is long since they were. told() says that they have been, change() that there is something new.
  [[nodiscard]] bool is_to_be_told(Nanos now) const {
    return last_ != kNone && now - entries_[last_].told >= ageing_ / kTellings;
  }
  void told(Nanos now) { entries_[last_].told = now; }
  void change() { entries_[last_].told = kUntold; }

  // Null when it is not known. Valid until something is heard.
  [[nodiscard]] const Value* find(const Key& key, Nanos now) const {
    const uint32_t index = find_entry(key);
    return index == kNone || is_old(entries_[index], now) ? nullptr : &entries_[index].value;
  }

  // Entries, counting old ones that nobody has asked for.
  [[nodiscard]] uint32_t size() const { return used_; }
  [[nodiscard]] uint32_t capacity() const { return static_cast<uint32_t>(entries_.size()); }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  static constexpr int kTellings = 4;  // in the life of an entry
  static constexpr Nanos kUntold{INT64_MIN / 2};
  struct Entry {
    Key key{};
    Value value{};
    Nanos heard{0};
    Nanos told{kUntold};
    uint32_t older = kNone, newer = kNone;
    uint32_t slot = 0;  // where slots_ points here
  };

  [[nodiscard]] uint32_t mask() const { return static_cast<uint32_t>(slots_.size() - 1); }
  [[nodiscard]] uint32_t next(uint32_t slot) const { return (slot + 1) & mask(); }
  [[nodiscard]] uint32_t home_of(const Key& key) const {
    return static_cast<uint32_t>(Hash()(key, salt_) >> shift_);
  }
  [[nodiscard]] bool is_old(const Entry& entry, Nanos now) const { return now - entry.heard >= ageing_; }
  [[nodiscard]] uint32_t find_entry(const Key& key) const {
    for (uint32_t slot = home_of(key); slots_[slot] != kNone; slot = next(slot)) {
      if (entries_[slots_[slot]].key == key) return slots_[slot];
    }
    return kNone;
  }
  // What is not known yet.
  Heard add(const Key& key, Nanos now) {
    while (oldest_ != kNone && is_old(entries_[oldest_], now)) forget(oldest_);
    last_ = kNone;
    if (free_.empty()) return {Learned::kFull, nullptr};

    const uint32_t index = free_.back();
    free_.pop_back();
    uint32_t slot = home_of(key);
    while (slots_[slot] != kNone) slot = next(slot);
    slots_[slot] = index;
    entries_[index] = Entry{.key = key, .heard = now, .slot = slot};
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
  // Closes the gap in the run of slots (Knuth 6.4 algorithm R), so that no tombstones pile up.
  void forget(uint32_t index) {
    unlink(index);
    uint32_t gap = entries_[index].slot;
    for (uint32_t slot = next(gap); slots_[slot] != kNone; slot = next(slot)) {
      Entry& entry = entries_[slots_[slot]];
      const uint32_t home = home_of(entry.key);
      if (((slot - home) & mask()) < ((slot - gap) & mask())) continue;  // its home lies behind the gap
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
  unsigned shift_ = 0;           // of the hash, to the size of slots_
  std::vector<uint32_t> slots_;  // at most half full
  std::vector<Entry> entries_;
  std::vector<uint32_t> free_;
  uint32_t oldest_ = kNone, newest_ = kNone;
  uint32_t last_ = kNone;  // that was heard of
  uint32_t used_ = 0;
};

}  // namespace roci
