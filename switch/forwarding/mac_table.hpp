// MAC table: the port at which a MAC address of a VLAN was last seen. Bounded (ageing_table.hpp).
//
// Half of the entries are reserved in equal parts for the ports, so that a flood of forged addresses at one port leaves
// entries for the addresses of each other port.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "switch/forwarding/ageing_table.hpp"
#include "switch/forwarding/port_bindings.hpp"
#include "switch/pipeline/packet.hpp"
#include "wire/headers/address.hpp"

namespace roci {

// Owned by one switch worker.
class MacTable {
 public:
  enum class Learned : uint8_t {
    kNew,
    kKnown,
    kMoved,
    kFull,      // not learned: the table or the port's part of it is full
    kNotBound,  // not learned: the address must not arrive at this port
  };

  // An address is removed `ageing` after its last frame; kNever: never. `ports`: number of ports with a reserved part;
  // 0: none. `bindings` may be null, and must otherwise outlive the table.
  MacTable(uint32_t size, Nanos ageing, size_t ports = 0, const PortBindings* bindings = nullptr)
      : table_(std::max(size, 1U), ageing),
        bindings_(bindings),
        entries_of_(ports, 0),
        reserve_(ports == 0 ? 0 : table_.capacity() / (2 * static_cast<uint32_t>(ports))),
        unused_reserve_(reserve_ * static_cast<uint32_t>(ports)) {}

  [[gnu::always_inline]] Learned learn(uint16_t vlan, const MacAddress& mac, uint16_t port, Nanos now) {
    const auto updated =
        table_.update(key_of(vlan, mac), now, [this](const PortOf& removed) { release(removed.port); });
    if (updated.learned == Table::Learned::kKnown && updated.value->port == port) [[likely]]
      return Learned::kKnown;
    return learn_change(updated, mac, port);
  }
  // Whether the other workers' tables need the address of the last learn() (AgeingTable).
  [[nodiscard]] bool needs_announcement(Nanos now) const { return table_.needs_announcement(now); }
  void announced(Nanos now) { table_.announced(now); }
  // Returns kNoPort for an unknown address. Not a std::optional: it is assembled in memory byte by byte and read at
  // once, and the resulting stall takes longer than the lookup.
  [[nodiscard]] uint16_t find(uint16_t vlan, const MacAddress& mac, Nanos now) const {
    const PortOf* found = table_.find(key_of(vlan, mac), now);
    return found == nullptr ? kNoPort : found->port;
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

  struct PortOf {
    uint16_t port = kNoPort;
  };
  using Table = AgeingTable<uint64_t, PortOf, Hash>;

  // Not inlined: rare.
  [[gnu::noinline]] Learned learn_change(const Table::Update& updated, const MacAddress& mac, uint16_t port) {
    const bool is_permitted = bindings_ == nullptr || bindings_->permits(mac, port);
    if (updated.value == nullptr) return is_permitted ? Learned::kFull : Learned::kNotBound;
    const bool is_new = updated.learned != Table::Learned::kKnown;
    const uint16_t before = updated.value->port;  // of an expired entry too
    if (!is_permitted && !is_new) return Learned::kNotBound;
    if (is_new) release(before);
    if (!is_permitted || (is_new && !has_space_for(port))) {
      table_.discard_last();
      return is_permitted ? Learned::kFull : Learned::kNotBound;
    }
    if (!is_new) release(before);
    take(port);
    updated.value->port = port;
    if (before != port) table_.change();
    return is_new ? Learned::kNew : Learned::kMoved;
  }
  [[nodiscard]] bool has_space_for(uint16_t port) const {
    if (port >= entries_of_.size() || entries_of_[port] < reserve_) return true;
    return table_.capacity() - counted_ > unused_reserve_;
  }
  void take(uint16_t port) {
    if (port >= entries_of_.size()) return;
    ++counted_;
    if (entries_of_[port]++ < reserve_) --unused_reserve_;
  }
  void release(uint16_t port) {
    if (port >= entries_of_.size()) return;
    --counted_;
    if (--entries_of_[port] < reserve_) ++unused_reserve_;
  }

  Table table_;  // ports by VLAN and MAC
  const PortBindings* bindings_;
  std::vector<uint32_t> entries_of_;  // by port
  uint32_t reserve_;                  // entries for each port
  uint32_t unused_reserve_;           // sum of the unused parts of the reserves
  uint32_t counted_ = 0;              // sum of entries_of_
};

}  // namespace roci
