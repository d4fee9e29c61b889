// In-place changes of IP header fields by routers and marking queues. Checksums are updated and not recomputed, so a
// damaged packet stays detectable. The ICRC covers none of these fields.
#pragma once

#include <cstdint>

#include "wire/headers/headers.hpp"
#include "wire/net/link_tags.hpp"

namespace roci {

// Returns the checksum after a 16-bit word that it covers changed from `before` to `after` (RFC 1624 equation 3).
constexpr uint16_t updated_checksum(uint16_t checksum, uint16_t before, uint16_t after) {
  uint32_t sum =
      static_cast<uint16_t>(~checksum) + static_cast<uint32_t>(static_cast<uint16_t>(~before)) + after;
  sum = (sum & 0xffff) + (sum >> 16);
  sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<uint16_t>(~sum);
}

// Offset and version of the IP header of a frame.
struct IpLocation {
  uint32_t offset = 0;
  uint8_t version = 0;  // 4 or 6; 0 without a complete IP header in the first `length` bytes
};

// Skips up to two VLAN tags and a CN-TAG.
inline IpLocation find_ip(const uint8_t* frame, uint32_t length) {
  if (length < sizeof(EthernetHeader)) return {};
  uint32_t offset = sizeof(EthernetHeader);
  uint16_t type = reinterpret_cast<const EthernetHeader*>(frame)->ether_type.get();
  for (int tags = 0; tags < 2 && (type == kEtherTypeVlan || type == kEtherTypeSTag); ++tags) {
    if (length < offset + sizeof(VlanHeader)) return {};
    type = reinterpret_cast<const VlanHeader*>(frame + offset)->ether_type.get();
    offset += static_cast<uint32_t>(sizeof(VlanHeader));
  }
  if (type == kEtherTypeCnTag && length >= offset + sizeof(CnTag)) {
    // same layout as VlanHeader
    type = reinterpret_cast<const VlanHeader*>(frame + offset)->ether_type.get();
    offset += static_cast<uint32_t>(sizeof(CnTag));
  }
  if (type == kEtherTypeIpv4 && length >= offset + sizeof(Ipv4Header) && frame[offset] >> 4 == 4)
    return {offset, 4};
  if (type == kEtherTypeIpv6 && length >= offset + sizeof(Ipv6Header) && frame[offset] >> 4 == 6)
    return {offset, 6};
  return {};
}

// Sets CE in an ECN-capable packet (RFC 3168 5). Returns false, without a change, for a packet that is not IP, not
// ECN-capable, or already marked.
inline bool mark_congestion(uint8_t* frame, uint32_t length) {
  const IpLocation ip = find_ip(frame, length);
  if (ip.version == 4) {
    auto& header = *reinterpret_cast<Ipv4Header*>(frame + ip.offset);
    const unsigned ecn = header.tos & 3U;
    if (ecn == 0 || ecn == 3) return false;
    const auto before = static_cast<uint16_t>(header.version_ihl << 8 | header.tos);
    header.tos |= 3;
    header.checksum.set(updated_checksum(header.checksum.get(), before, static_cast<uint16_t>(before | 3)));
    return true;
  }
  if (ip.version == 6) {
    auto& header = *reinterpret_cast<Ipv6Header*>(frame + ip.offset);
    const uint32_t word = header.version_class_flow.get();
    const unsigned ecn = word >> 20 & 3;
    if (ecn == 0 || ecn == 3) return false;
    header.version_class_flow.set(word | 3U << 20);
    return true;
  }
  return false;
}

// Decrements the TTL. The caller has checked that it is not 0.
inline void decrement_ttl(Ipv4Header& header) {
  const auto before = static_cast<uint16_t>(header.ttl << 8 | header.protocol);
  --header.ttl;
  const auto after = static_cast<uint16_t>(header.ttl << 8 | header.protocol);
  header.checksum.set(updated_checksum(header.checksum.get(), before, after));
}

}  // namespace roci
