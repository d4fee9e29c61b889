#include "switch/mac_table.hpp"

#include <algorithm>
#include <cstring>

#include "wire/endian.hpp"

namespace roci {
namespace {

uint64_t key_of(uint16_t vlan, const MacAddress& mac) {
  Be32 first;
  Be16 last;
  std::memcpy(static_cast<void*>(&first), mac.bytes.data(), sizeof first);
  std::memcpy(static_cast<void*>(&last), mac.bytes.data() + sizeof first, sizeof last);
  return uint64_t{vlan} << 48 | uint64_t{first.get()} << 16 | last.get();
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

uint16_t MacTable::find(uint16_t vlan, const MacAddress& mac, Nanos now) const {
  const uint16_t* port = table_.find(key_of(vlan, mac), now);
  return port == nullptr ? kNoPort : *port;
}

}  // namespace roci
