// MAC table: the port at which a MAC address of a VLAN was last seen. Bounded (ageing_table.hpp).
#pragma once

#include <algorithm>
#include <cstdint>

#include "switch/forwarding/ageing_table.hpp"
#include "switch/pipeline/packet.hpp"
#include "wire/headers/address.hpp"

namespace roci {

// Owned by one switch worker.
class MacTable {
 public:
  enum class Learned : uint8_t { kNew, kKnown, kMoved, kFull };

  // An address is removed `ageing` after its last frame; kNever: never.
  MacTable(uint32_t size, Nanos ageing) : table_(std::max(size, 1U), ageing) {}

  [[gnu::always_inline]] Learned learn(uint16_t vlan, const MacAddress& mac, uint16_t port, Nanos now) {
    const auto updated = table_.update(key_of(vlan, mac), now);
    if (updated.value == nullptr) return Learned::kFull;
    const bool moved = *updated.value != port;
    if (moved) {
      *updated.value = port;
      table_.change();
    }
    if (updated.learned != decltype(table_)::Learned::kKnown) return Learned::kNew;
    return moved ? Learned::kMoved : Learned::kKnown;
  }
  // Whether the other workers' tables need the address of the last learn() (AgeingTable).
  [[nodiscard]] bool needs_announcement(Nanos now) const { return table_.needs_announcement(now); }
  void announced(Nanos now) { table_.announced(now); }
  // Returns kNoPort for an unknown address. Not a std::optional: it is assembled in memory byte by byte and read at
  // once, and the resulting stall takes longer than the lookup.
  [[nodiscard]] uint16_t find(uint16_t vlan, const MacAddress& mac, Nanos now) const {
    const uint16_t* port = table_.find(key_of(vlan, mac), now);
    return port == nullptr ? kNoPort : *port;
  }

  // Number of entries, including expired ones that are not removed yet.
  [[nodiscard]] uint32_t size() const { return table_.size(); }
  [[nodiscard]] uint32_t capacity() const { return table_.capacity(); }

 private:
  struct Hash {
    uint64_t operator()(uint64_t key, uint64_t salt) const {
      uint64_t h = key * salt;
      h ^= h >> 32;
      return h * 0x9e3779b97f4a7c15;  // 2^64 / golden ratio: spreads into the top bits
    }
  };
  static uint64_t key_of(uint16_t vlan, const MacAddress& mac) { return uint64_t{vlan} << 48 | mac.bits(); }

  AgeingTable<uint64_t, uint16_t, Hash> table_;  // ports by VLAN and MAC
};

}  // namespace roci
