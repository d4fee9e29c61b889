#include "switch/forwarding/port_bindings.hpp"

#include <algorithm>

#include "wire/headers/headers.hpp"
#include "wire/net/arp.hpp"
#include "wire/net/link_tags.hpp"

namespace roci {

PortBindings::PortBindings(const SwitchConfig& config) : ports_(config.ports.size()) {
  std::vector<RouteEntry> v4, v6;
  const auto count = static_cast<uint16_t>(ports_.size());
  for (uint16_t i = 0; i < count; ++i) {
    const SwitchPortConfig& port = config.ports[i];
    Bound& bound = ports_[i];
    bound.macs = !port.macs.empty();
    bound.addresses = !port.addresses.empty();
    has_addresses_ |= bound.addresses;
    for (const MacAddress& mac : port.macs) macs_.emplace(mac.bits(), i);
    for (const IpNetwork& network : port.addresses) {
      const bool is_v4 = network.address.is_v4();
      (is_v4 ? v4 : v6).push_back({network, i});
      IpAddress& first = is_v4 ? bound.v4 : bound.v6;
      if (first.is_zero() && network == IpNetwork::host(network.address)) first = network.address;
    }
  }
  v4_ = RouteRanges(v4);
  v6_ = RouteRanges(v6);
}

bool PortBindings::permits(const MacAddress& mac, uint16_t port) const {
  if (macs_.empty()) return true;
  const auto bound = macs_.find(mac.bits());
  return bound == macs_.end() ? !ports_[port].macs : bound->second == port;
}

bool PortBindings::permits(const IpAddress& address, uint16_t port) const {
  const Bound& bound = ports_[port];
  const uint16_t owner = (address.is_v4() ? v4_ : v6_).find(address);
  if (owner != kNotFound) return owner == port;
  const bool is_unspecified = address.is_v4() ? address.v4() == 0 : address.is_zero();
  return !bound.addresses || is_unspecified || address.is_link_local();
}

bool PortBindings::permits_addresses_of(const SwitchPacket& packet) const {
  if (packet.ingress >= ports_.size()) return true;
  const auto* l3 = rte_pktmbuf_mtod_offset(packet.frame, const uint8_t*, packet.l3_offset);
  const auto length = static_cast<uint32_t>(packet.frame->data_len - packet.l3_offset);
  switch (packet.ether_type) {
    case kEtherTypeIpv4: {
      if (length < sizeof(Ipv4Header)) return !ports_[packet.ingress].addresses;
      const auto source = IpAddress::from_v4(reinterpret_cast<const Ipv4Header*>(l3)->source.get());
      return source == ports_[packet.ingress].v4 || permits(source, packet.ingress);
    }
    case kEtherTypeIpv6:
      return permits_ipv6(l3, length, packet.ingress);
    case kEtherTypeArp:
      return permits_arp(l3, length, packet.ingress);
    case kEtherTypeVlan:
    case kEtherTypeSTag:
    case kEtherTypeCnTag:  // in front of another tag
      return permits_inner_packet(packet);
    default:
      return true;
  }
}

// The switch may remove the outer tag. Receivers accept a frame whose innermost VID is 0 as an untagged one, so its
// addresses are checked. With another VID, the packet belongs to a VLAN that the switch does not know.
bool PortBindings::permits_inner_packet(const SwitchPacket& packet) const {
  if (ports_[packet.ingress].addresses) return false;
  const auto tagged =
      parse_link_tags({rte_pktmbuf_mtod(packet.frame, const uint8_t*), packet.frame->data_len});
  if (!tagged || tagged->tags.vlan_count == 0) return false;  // truncated, or a CN-TAG in front of a VLAN tag
  SwitchPacket inner = packet;
  inner.ether_type = tagged->ether_type;
  inner.l3_offset = static_cast<uint16_t>(tagged->l3_offset());
  const bool has_more_tags = inner.ether_type == kEtherTypeVlan || inner.ether_type == kEtherTypeSTag ||
                             inner.ether_type == kEtherTypeCnTag;
  if (has_more_tags || inner.l3_offset > packet.frame->data_len) return false;
  const VlanTag& innermost = tagged->tags.vlan[tagged->tags.vlan_count - 1U];
  return (innermost.tci & 0xfff) != 0 || permits_addresses_of(inner);
}

bool PortBindings::permits_arp(const uint8_t* arp, uint32_t length, uint16_t port) const {
  const auto message = parse_arp({arp, std::min<size_t>(length, sizeof(ArpHeader))});
  if (!message) return !ports_[port].addresses;
  return permits(message->sender_ip, port) && permits(message->sender_mac, port);
}

bool PortBindings::permits_ipv6(const uint8_t* packet, uint32_t length, uint16_t port) const {
  constexpr uint8_t kAdvertisement = 136;  // RFC 4861 4.4
  constexpr uint32_t kTarget = 8;          // offset in the message
  if (length < sizeof(Ipv6Header)) return !ports_[port].addresses;
  const auto& ip = *reinterpret_cast<const Ipv6Header*>(packet);
  const IpAddress source{ip.source};
  if (source != ports_[port].v6 && !permits(source, port)) return false;
  if (ip.next_header != kProtocolIcmpv6) return true;
  const uint8_t* message = packet + sizeof(Ipv6Header);
  const uint32_t left = length - static_cast<uint32_t>(sizeof(Ipv6Header));
  if (left == 0 || message[0] != kAdvertisement) return true;
  IpAddress target;
  if (left < kTarget + target.bytes.size()) return false;
  std::copy_n(message + kTarget, target.bytes.size(), target.bytes.begin());
  return permits(target, port);
}

}  // namespace roci
