#include "roci-pcap/explain.hpp"

#include <fmt/format.h>
#include <rte_byteorder.h>

#include <optional>

#include "wire/headers/aeth.hpp"
#include "wire/headers/checksum.hpp"

namespace roci::pcap_tool {
namespace {

// Protocol and offset of the header after the IP header. Empty if the IP header is incomplete or invalid, or for a
// later fragment.
struct Above {
  uint8_t protocol;
  uint32_t offset;
};
std::optional<Above> above_ip(const FrameView& view, uint32_t captured) {
  if (view.l3_offset < sizeof(EthernetHeader)) return std::nullopt;
  const uint16_t type = view.at<Be16>(view.l3_offset - 2U).get();
  if (type == kEtherTypeIpv6) {
    const uint32_t offset = view.l3_offset + static_cast<uint32_t>(sizeof(Ipv6Header));
    if (captured < offset) return std::nullopt;
    return Above{view.ip6().next_header, offset};
  }
  if (type != kEtherTypeIpv4 || captured < view.l3_offset + sizeof(Ipv4Header)) return std::nullopt;
  const uint32_t header = (view.ipv4().version_ihl & 0xfU) * 4;
  // A later fragment has no transport header after its IP header. With a wrong checksum, its flags and offset are not
  // used.
  const bool later_fragment =
      view.kind == FrameKind::kFragment && (view.ipv4().flags_fragment.get() & 0x1fff) != 0;
  if (header < sizeof(Ipv4Header) || later_fragment) return std::nullopt;
  return Above{view.ipv4().protocol, view.l3_offset + header};
}

std::string bad_ip(const FrameView& view, uint32_t captured) {
  if (view.ipv6)
    return fmt::format("ip.version: {}, but the EtherType is IPv6", view.at<uint8_t>(view.l3_offset) >> 4);
  const Ipv4Header& ip = view.ipv4();
  const uint32_t header = (ip.version_ihl & 0xfU) * 4;
  if (ip.version_ihl >> 4 != 4)
    return fmt::format("ip.version: {}, but the EtherType is IPv4", ip.version_ihl >> 4);
  if (ip.total_length.get() < header) {
    return fmt::format("ip.total_length: {} is less than the header's {} bytes", ip.total_length.get(),
                       header);
  }
  if (captured < view.l3_offset + header) return "ip.header_length: the header is truncated";
  // The correct checksum is the sum over the header with a checksum field of 0.
  Ipv4Header zeroed = ip;
  zeroed.checksum.set(0);
  std::string bytes(reinterpret_cast<const char*>(&ip), header);
  bytes.replace(0, sizeof zeroed, reinterpret_cast<const char*>(&zeroed), sizeof zeroed);
  return fmt::format("ip.checksum: 0x{:04x} is stored, 0x{:04x} is computed", ip.checksum.get(),
                     rte_be_to_cpu_16(inet_checksum(bytes.data(), bytes.size())));
}

std::string describe_arp(const FrameView& view, uint32_t captured) {
  // RFC 826: hardware and protocol type and size, operation, then MAC and IPv4 address of sender and of target.
  const uint32_t at = view.l3_offset;
  if (captured < at + 28U) return "ARP";
  const uint16_t operation = view.at<Be16>(at + 6).get();
  const std::string sender = IpAddress::from_v4(view.at<Be32>(at + 14).get()).to_string();
  const std::string target = IpAddress::from_v4(view.at<Be32>(at + 24).get()).to_string();
  if (operation == 1) return fmt::format("ARP request: who has {}? tell {}", target, sender);
  if (operation == 2)
    return fmt::format("ARP reply: {} is at {}", sender, view.at<MacAddress>(at + 8).to_string());
  return fmt::format("ARP operation {}", operation);
}

std::string describe_icmp(bool v6, uint8_t type) {
  if (!v6) {
    if (type == 8) return "ICMP echo request";
    if (type == 0) return "ICMP echo reply";
    if (type == 3) return "ICMP destination unreachable";
    return fmt::format("ICMP type {}", type);
  }
  switch (type) {
    case 128:
      return "ICMPv6 echo request";
    case 129:
      return "ICMPv6 echo reply";
    case 133:
      return "ICMPv6 router solicitation";
    case 134:
      return "ICMPv6 router advertisement";
    case 135:
      return "ICMPv6 neighbor solicitation";
    case 136:
      return "ICMPv6 neighbor advertisement";
    case 143:
      return "ICMPv6 multicast listener report";
    default:
      return fmt::format("ICMPv6 type {}", type);
  }
}

}  // namespace

bool is_meant_as_roce(const FrameView& view, uint32_t captured) {
  const auto above = above_ip(view, captured);
  if (!above || above->protocol != kProtocolUdp || captured < above->offset + 4) return false;
  return view.at<Be16>(above->offset + 2).get() == kRoceUdpPort;
}

std::string why_malformed(const FrameView& view, uint32_t captured) {
  switch (view.kind) {
    case FrameKind::kTruncated:
      return fmt::format("frame: its {} bytes are fewer than the headers specify", view.frame_length);
    case FrameKind::kBadIp:
      return bad_ip(view, captured);
    case FrameKind::kFragment:
      return "ip.flags_fragment: a fragment, which RoCEv2 forbids";
    case FrameKind::kBadUdp:
      if (captured < view.l4_offset + sizeof(UdpHeader))
        return "udp.length: the IP payload is too short for the UDP header";
      return fmt::format("udp.length: {} disagrees with the length in the IP header",
                         view.udp().length.get());
    case FrameKind::kBadVersion:
      return fmt::format("bth.version: {} is unsupported; supported is 0", view.bth().version());
    case FrameKind::kUnknownOpcode:
      return fmt::format("bth.opcode: 0x{:02x} is not a known opcode", view.bth().opcode);
    case FrameKind::kBadLength:
      if (view.opcode == nullptr) return "udp.length: too short for a BTH and an ICRC";
      if (view.icrc_offset != 0) {
        return fmt::format("bth.pad_count: {} exceeds the payload", view.bth().pad_count());
      }
      return fmt::format("udp.length: too short for the headers of {} and an ICRC", view.opcode->name);
    default:
      return std::string(frame_kind_name(view.kind));
  }
}

std::string describe_other(const FrameView& view, uint32_t captured) {
  if (view.kind == FrameKind::kArp) return describe_arp(view, captured);
  if (view.kind == FrameKind::kOther) {
    return fmt::format("EtherType 0x{:04x}", view.at<Be16>(view.l3_offset - 2U).get());
  }
  if (view.kind == FrameKind::kFragment) return "IP fragment";
  const auto above = above_ip(view, captured);
  if (view.kind != FrameKind::kIpv4 && view.kind != FrameKind::kIpv6)
    return std::string(frame_kind_name(view.kind));
  const char* ip = view.ipv6 ? "IPv6" : "IPv4";
  if (!above) return ip;
  const bool icmp = above->protocol == (view.ipv6 ? kProtocolIcmpv6 : kProtocolIcmp);
  if (icmp && captured > above->offset) return describe_icmp(view.ipv6, view.at<uint8_t>(above->offset));
  constexpr uint8_t kTcp = 6;
  if ((above->protocol == kProtocolUdp || above->protocol == kTcp) && captured >= above->offset + 4) {
    return fmt::format("{} {} to {}", above->protocol == kTcp ? "TCP" : "UDP",
                       view.at<Be16>(above->offset).get(), view.at<Be16>(above->offset + 2).get());
  }
  return fmt::format("{} protocol {}", ip, above->protocol);
}

std::string describe_syndrome(uint8_t syndrome) {
  const uint8_t value = aeth_value(syndrome);
  switch (aeth_kind(syndrome)) {
    case AethKind::kAck:
      return value == aeth_value(kSyndromeAck) ? "ACK" : fmt::format("ACK, credit code {}", value);
    case AethKind::kRnrNak:
      return fmt::format("RNR NAK, wait {} us",
                         std::chrono::duration_cast<std::chrono::microseconds>(rnr_delay(value)).count());
    case AethKind::kReserved:
      return fmt::format("reserved syndrome 0x{:02x}", syndrome);
    case AethKind::kNak:
      break;
  }
  switch (static_cast<NakCode>(value)) {
    case NakCode::kPsnSequenceError:
      return "NAK: PSN sequence error";
    case NakCode::kInvalidRequest:
      return "NAK: invalid request";
    case NakCode::kRemoteAccessError:
      return "NAK: remote access error";
    case NakCode::kRemoteOperationalError:
      return "NAK: remote operational error";
    case NakCode::kInvalidRdRequest:
      return "NAK: invalid RD request";
  }
  return fmt::format("NAK code {}", value);
}

}  // namespace roci::pcap_tool
