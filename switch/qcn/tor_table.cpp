#include "switch/qcn/tor_table.hpp"

#include "wire/headers/flow_hasher.hpp"

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
  FlowHasher mix{salt};
  mix.add(key.source.bytes);
  mix.add(key.destination.bytes);
  mix.add(static_cast<uint64_t>(key.source_port) << 32 | static_cast<uint64_t>(key.destination_port) << 16 |
          key.protocol);
  return mix.value() * salt;
}

}  // namespace roci
