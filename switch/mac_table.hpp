// Which port a MAC address of a VLAN was last seen on. Bounded (ageing_table.hpp).
#pragma once

#include <cstdint>

#include "switch/ageing_table.hpp"
#include "switch/packet.hpp"
#include "wire/address.hpp"

namespace roci {

// Owned by the switch's thread.
class MacTable {
 public:
  enum class Learned : uint8_t { kNew, kKnown, kMoved, kFull };

  // `ageing` after the last frame from an address it is forgotten; kNever keeps all.
  MacTable(uint32_t size, Nanos ageing);

  Learned learn(uint16_t vlan, const MacAddress& mac, uint16_t port, Nanos now);
  // Of what was last learnt: whether who has a copy of the table is to be told (AgeingTable).
  [[nodiscard]] bool is_to_be_told(Nanos now) const { return table_.is_to_be_told(now); }
  void told(Nanos now) { table_.told(now); }
  // kNoPort when it is not known. No std::optional, which is put together in memory byte by byte and read back at once: a
  // processor waits for that longer than for all of the look-up.
  [[nodiscard]] uint16_t find(uint16_t vlan, const MacAddress& mac, Nanos now) const;

  // Entries, counting old ones that nobody has asked for.
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
  AgeingTable<uint64_t, uint16_t, Hash> table_;  // ports by VLAN and MAC
};

}  // namespace roci
