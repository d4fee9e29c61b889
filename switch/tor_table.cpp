#include "switch/tor_table.hpp"

#include <array>
#include <bit>

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

uint64_t FlowHash::operator()(const FiveTuple& key, uint64_t salt) const {
  uint64_t h = salt;
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
  return h * salt;
}

}  // namespace roci
