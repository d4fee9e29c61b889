// Ethernet header, with or without a VLAN tag, of the ARP, ND and ICMP frames that this host sends.
#pragma once

#include "wire/headers/headers.hpp"

namespace roci {

struct LinkHeader {
  MacAddress destination;
  MacAddress source;
  uint16_t vlan_id = 0;  // 0: untagged

  [[nodiscard]] constexpr uint32_t size() const {
    return vlan_id == 0 ? sizeof(EthernetHeader) : sizeof(EthernetHeader) + sizeof(VlanHeader);
  }
  // Writes size() bytes.
  void write(uint8_t* out, uint16_t ether_type) const {
    auto& ethernet = *reinterpret_cast<EthernetHeader*>(out);
    ethernet.destination = destination;
    ethernet.source = source;
    ethernet.ether_type.set(vlan_id == 0 ? ether_type : kEtherTypeVlan);
    if (vlan_id == 0) return;
    auto& tag = *reinterpret_cast<VlanHeader*>(out + sizeof(EthernetHeader));
    tag.tci.set(vlan_id & 0xfff);
    tag.ether_type.set(ether_type);
  }
};

}  // namespace roci
