#include "wire/roce/frame.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "wire/headers/checksum.hpp"

namespace roci {
namespace {

// Sets all fields from the UDP header on. `l3_end` is the end of the IP packet in the frame.
FrameKind parse_roce(FrameView& view, uint32_t head_length, uint32_t l3_end, OpcodeRange opcodes) {
  const uint32_t udp_bytes = view.udp().length.get();
  if (udp_bytes != l3_end - view.l4_offset) return FrameKind::kBadUdp;
  view.bth_offset = static_cast<uint16_t>(view.l4_offset + sizeof(UdpHeader));
  if (l3_end < view.bth_offset + sizeof(Bth) + kIcrcBytes) return FrameKind::kBadLength;
  if (head_length < view.bth_offset + sizeof(Bth)) return FrameKind::kTruncated;
  if (view.bth().version() != 0) return FrameKind::kBadVersion;
  view.opcode = find_opcode(view.bth().opcode);
  if (view.opcode != nullptr && view.opcode->is_private() && opcodes == OpcodeRange::kStandard)
    view.opcode = nullptr;
  if (view.opcode == nullptr) return FrameKind::kUnknownOpcode;
  view.payload_offset = static_cast<uint16_t>(view.bth_offset + view.opcode->header_bytes);
  if (l3_end < view.payload_offset + kIcrcBytes) return FrameKind::kBadLength;
  if (head_length < view.payload_offset) return FrameKind::kTruncated;
  view.icrc_offset = l3_end - kIcrcBytes;
  const uint32_t padded = view.icrc_offset - view.payload_offset;
  view.pad = view.bth().pad_count();
  if (view.pad > padded) return FrameKind::kBadLength;
  view.payload_length = padded - view.pad;
  return FrameKind::kRoce;
}

// Checks an IPv4 header checksum. A header without options takes five additions, in any byte order (RFC 1071 2).
bool has_right_checksum(const uint8_t* ip, uint32_t header) {
  if (header != sizeof(Ipv4Header)) return inet_checksum(ip, header) == 0;
  std::array<uint32_t, sizeof(Ipv4Header) / 4> words;
  std::memcpy(words.data(), ip, sizeof words);
  uint64_t sum = 0;
  for (const uint32_t word : words) sum += word;
  sum = (sum & 0xffff'ffff) + (sum >> 32);
  sum = (sum & 0xffff) + (sum >> 16);
  sum = (sum & 0xffff) + (sum >> 16);
  return sum == 0xffff;
}

FrameKind parse_ipv4(FrameView& view, uint32_t head_length, OpcodeRange opcodes) {
  if (head_length < view.l3_offset + sizeof(Ipv4Header)) return FrameKind::kTruncated;
  const Ipv4Header& ip = view.ipv4();
  const uint32_t header = (ip.version_ihl & 0xfU) * 4;
  const uint32_t total = ip.total_length.get();
  if (ip.version_ihl >> 4 != 4 || header < sizeof(Ipv4Header) || total < header) return FrameKind::kBadIp;
  if (head_length < view.l3_offset + header || view.frame_length < view.l3_offset + total) {
    return FrameKind::kTruncated;
  }
  if (!has_right_checksum(view.frame + view.l3_offset, header)) return FrameKind::kBadIp;
  if ((ip.flags_fragment.get() & 0x3fff) != 0) return FrameKind::kFragment;
  view.l4_offset = static_cast<uint16_t>(view.l3_offset + header);
  if (ip.protocol != kProtocolUdp) return FrameKind::kIpv4;
  if (total < header + sizeof(UdpHeader)) return FrameKind::kBadUdp;
  if (head_length < view.l4_offset + sizeof(UdpHeader)) return FrameKind::kTruncated;
  if (view.udp().destination_port.get() != kRoceUdpPort) return FrameKind::kIpv4;
  return parse_roce(view, head_length, view.l3_offset + total, opcodes);
}

FrameKind parse_ipv6(FrameView& view, uint32_t head_length, OpcodeRange opcodes) {
  view.ipv6 = true;
  if (head_length < view.l3_offset + sizeof(Ipv6Header)) return FrameKind::kTruncated;
  const Ipv6Header& ip = view.ip6();
  if (ip.version_class_flow.get() >> 28 != 6) return FrameKind::kBadIp;
  const uint32_t total = static_cast<uint32_t>(sizeof(Ipv6Header)) + ip.payload_length.get();
  if (view.frame_length < view.l3_offset + total) return FrameKind::kTruncated;
  view.l4_offset = static_cast<uint16_t>(view.l3_offset + sizeof(Ipv6Header));
  if (ip.next_header == kProtocolIpv6Fragment) return FrameKind::kFragment;
  if (ip.next_header != kProtocolUdp) return FrameKind::kIpv6;
  if (total < sizeof(Ipv6Header) + sizeof(UdpHeader)) return FrameKind::kBadUdp;
  if (head_length < view.l4_offset + sizeof(UdpHeader)) return FrameKind::kTruncated;
  if (view.udp().destination_port.get() != kRoceUdpPort) return FrameKind::kIpv6;
  return parse_roce(view, head_length, view.l3_offset + total, opcodes);
}

}  // namespace

std::string_view frame_kind_name(FrameKind kind) {
  constexpr std::string_view kNames[kFrameKindCount] = {
      "RoCEv2", "ARP",         "IPv4",    "IPv6",        "other",          "truncated",
      "bad IP", "IP fragment", "bad UDP", "bad version", "unknown opcode", "bad length"};
  return kNames[static_cast<unsigned>(kind)];
}

IpAddress FrameView::source_ip() const {
  if (!ipv6) return IpAddress::from_v4(ipv4().source.get());
  return IpAddress{ip6().source};
}

IpAddress FrameView::destination_ip() const {
  if (!ipv6) return IpAddress::from_v4(ipv4().destination.get());
  return IpAddress{ip6().destination};
}

bool FrameView::is_between(const IpAddress& source, const IpAddress& destination) const {
  if (ipv6) return IpAddress{ip6().source} == source && IpAddress{ip6().destination} == destination;
  return source.is_v4() && destination.is_v4() && ipv4().source.get() == source.v4() &&
         ipv4().destination.get() == destination.v4();
}

uint8_t FrameView::traffic_class() const {
  return ipv6 ? static_cast<uint8_t>(ip6().version_class_flow.get() >> 20) : ipv4().tos;
}

FrameView parse_frame(const uint8_t* head, uint32_t head_length, uint32_t frame_length, OpcodeRange opcodes) {
  FrameView view;
  parse_frame(view, head, head_length, frame_length, opcodes);
  return view;
}

void parse_frame(FrameView& view, const uint8_t* head, uint32_t head_length, uint32_t frame_length,
                 OpcodeRange opcodes) {
  view.frame = head;
  view.frame_length = frame_length;
  head_length = std::min(head_length, frame_length);
  if (head_length < sizeof(EthernetHeader)) {
    view.kind = FrameKind::kTruncated;
    return;
  }
  uint32_t offset = sizeof(EthernetHeader);
  uint16_t type = view.ethernet().ether_type.get();
  while ((type == kEtherTypeVlan || type == kEtherTypeSTag) && view.vlan_tags < 2) {
    view.l3_offset = static_cast<uint16_t>(offset);  // vlan() uses this offset, in a truncated frame too
    if (head_length < offset + sizeof(VlanHeader)) {
      view.kind = FrameKind::kTruncated;
      return;
    }
    type = view.at<VlanHeader>(offset).ether_type.get();
    offset += sizeof(VlanHeader);
    ++view.vlan_tags;
  }
  // Receivers ignore the CN-TAG, since its flow is significant only to the sender (802.1Q 33.2).
  if (type == kEtherTypeCnTag) {
    view.l3_offset = static_cast<uint16_t>(offset);
    if (head_length < offset + sizeof(VlanHeader)) {
      view.kind = FrameKind::kTruncated;
      return;
    }
    type = view.at<VlanHeader>(offset).ether_type.get();  // both tags have the next EtherType at this offset
    offset += sizeof(VlanHeader);
    view.cn_tag = true;
  }
  view.l3_offset = static_cast<uint16_t>(offset);
  switch (type) {
    case kEtherTypeIpv4:
      view.kind = parse_ipv4(view, head_length, opcodes);
      break;
    case kEtherTypeIpv6:
      view.kind = parse_ipv6(view, head_length, opcodes);
      break;
    case kEtherTypeArp:
      view.kind = FrameKind::kArp;
      break;
    default:
      view.kind = FrameKind::kOther;
  }
}

}  // namespace roci
