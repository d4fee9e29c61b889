#include "switch/mac_table.hpp"

#include <algorithm>

namespace roci {
namespace {

uint64_t key_of(uint16_t vlan, const MacAddress& mac) {
  uint64_t key = vlan;
  for (const uint8_t byte : mac.bytes) key = key << 8 | byte;
  return key;
}

}  // namespace

MacTable::MacTable(uint32_t size, Nanos ageing) : table_(std::max(size, 1U), ageing) {}

MacTable::Learned MacTable::learn(uint16_t vlan, const MacAddress& mac, uint16_t port, Nanos now) {
  const auto heard = table_.hear(key_of(vlan, mac), now);
  if (heard.value == nullptr) return Learned::kFull;
  const bool moved = *heard.value != port;
  *heard.value = port;
  if (moved) table_.change();
  if (heard.learned != decltype(table_)::Learned::kKnown) return Learned::kNew;
  return moved ? Learned::kMoved : Learned::kKnown;
}

std::optional<uint16_t> MacTable::find(uint16_t vlan, const MacAddress& mac, Nanos now) const {
  const uint16_t* port = table_.find(key_of(vlan, mac), now);
  return port == nullptr ? std::nullopt : std::optional(*port);
}

}  // namespace roci
