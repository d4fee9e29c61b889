#include "wire/net/udp_location.hpp"

#include "wire/headers/header_at.hpp"
#include "wire/net/link_tags.hpp"

namespace roci {
namespace {

UdpOutcome find_in_ipv4(UdpLocation& found, std::span<const uint8_t> head, uint32_t frame_length) {
  if (head.size() < found.l3_offset + sizeof(Ipv4Header)) return UdpOutcome::kTruncated;
  const auto& ip = header_at<Ipv4Header>(head, found.l3_offset);
  const uint32_t header = (ip.version_ihl & 0xfU) * 4;
  const uint32_t total = ip.total_length.get();
  if (ip.version_ihl >> 4 != 4 || header < sizeof(Ipv4Header) || total < header) return UdpOutcome::kBadIp;
  if (frame_length < found.l3_offset + total) return UdpOutcome::kTruncated;
  if ((ip.flags_fragment.get() & 0x3fff) != 0) return UdpOutcome::kFragment;
  if (ip.protocol != kProtocolUdp) return UdpOutcome::kNotUdp;
  found.l4_offset = found.l3_offset + header;
  found.end = found.l3_offset + total;
  return UdpOutcome::kFound;
}

UdpOutcome find_in_ipv6(UdpLocation& found, std::span<const uint8_t> head, uint32_t frame_length) {
  found.ipv6 = true;
  if (head.size() < found.l3_offset + sizeof(Ipv6Header)) return UdpOutcome::kTruncated;
  const auto& ip = header_at<Ipv6Header>(head, found.l3_offset);
  if (ip.version_class_flow.get() >> 28 != 6) return UdpOutcome::kBadIp;
  found.l4_offset = found.l3_offset + static_cast<uint32_t>(sizeof(Ipv6Header));
  found.end = found.l4_offset + ip.payload_length.get();
  if (frame_length < found.end) return UdpOutcome::kTruncated;
  if (ip.next_header == kProtocolIpv6Fragment) return UdpOutcome::kFragment;
  return ip.next_header == kProtocolUdp ? UdpOutcome::kFound : UdpOutcome::kNotUdp;
}

UdpOutcome check_udp(const UdpLocation& found, std::span<const uint8_t> head) {
  const uint32_t bytes = found.end - found.l4_offset;
  if (bytes < sizeof(UdpHeader)) return UdpOutcome::kBadUdp;
  if (head.size() < found.l4_offset + sizeof(UdpHeader)) return UdpOutcome::kTruncated;
  return header_at<UdpHeader>(head, found.l4_offset).length.get() == bytes ? UdpOutcome::kFound
                                                                           : UdpOutcome::kBadUdp;
}

}  // namespace

UdpLocation find_udp(std::span<const uint8_t> head, uint32_t frame_length) {
  UdpLocation found;
  uint16_t type = head.size() < sizeof(EthernetHeader) ? uint16_t{0}
                                                       : header_at<EthernetHeader>(head, 0).ether_type.get();
  found.l3_offset = sizeof(EthernetHeader);
  if (type != kEtherTypeIpv4 && type != kEtherTypeIpv6) {  // tags, or not IP
    const auto tagged = parse_link_tags(head);
    if (!tagged) {
      found.l3_offset = 0;
      found.outcome = UdpOutcome::kTruncated;
      return found;
    }
    type = tagged->ether_type;
    found.l3_offset = tagged->l3_offset();
  }
  if (type == kEtherTypeIpv4) {
    found.outcome = find_in_ipv4(found, head, frame_length);
  } else if (type == kEtherTypeIpv6) {
    found.outcome = find_in_ipv6(found, head, frame_length);
  }
  if (found.outcome == UdpOutcome::kFound) found.outcome = check_udp(found, head);
  return found;
}

}  // namespace roci
