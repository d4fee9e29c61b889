// Which port a MAC address of a VLAN was last seen on. Bounded: a full table forgets what is too old and otherwise
// learns nothing new, so that a flood of forged addresses cannot drive out the real ones.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/types.hpp"
#include "wire/address.hpp"

namespace roci {

// A hash table with linear probing, and a list through its entries in the order they were last heard of, so the ones
// to forget are always at its front. Owned by the switch's thread.
class MacTable {
 public:
  enum class Learned : uint8_t { kNew, kKnown, kMoved, kFull };

  // `ageing` after the last frame from an address it is forgotten; kNever keeps all.
  MacTable(uint32_t size, Nanos ageing);

  Learned learn(uint16_t vlan, const MacAddress& mac, uint16_t port, Nanos now);
  [[nodiscard]] std::optional<uint16_t> find(uint16_t vlan, const MacAddress& mac, Nanos now) const;

  // Entries, counting old ones that nobody has asked for.
  [[nodiscard]] uint32_t size() const { return used_; }
  [[nodiscard]] uint32_t capacity() const { return size_; }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  struct Entry {
    uint64_t key = 0;  // VLAN and MAC; no real one is 0
    Nanos heard{0};
    uint32_t older = kNone, newer = kNone;
    uint32_t slot = 0;  // where slots_ points here
    uint16_t port = 0;
  };

  static uint64_t key_of(uint16_t vlan, const MacAddress& mac);
  [[nodiscard]] uint32_t home_of(uint64_t key) const;
  [[nodiscard]] uint32_t find_entry(uint64_t key) const;
  [[nodiscard]] bool is_old(const Entry& entry, Nanos now) const { return now - entry.heard >= ageing_; }
  void to_newest(uint32_t index);
  void unlink(uint32_t index);
  void forget(uint32_t index);

  uint32_t size_;
  Nanos ageing_;
  uint64_t salt_;                // unknown to whoever would choose addresses that collide
  unsigned shift_;               // of the hash, to the size of slots_
  std::vector<uint32_t> slots_;  // at most half full
  std::vector<Entry> entries_;
  std::vector<uint32_t> free_;
  uint32_t oldest_ = kNone, newest_ = kNone;
  uint32_t used_ = 0;
};

}  // namespace roci
