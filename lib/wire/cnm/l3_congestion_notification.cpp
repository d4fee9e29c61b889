#include "wire/cnm/l3_congestion_notification.hpp"

#include <rte_ip.h>

#include <bit>
#include <cstring>

#include "wire/headers/checksum.hpp"
#include "wire/net/link_header.hpp"
#include "wire/net/udp_location.hpp"

namespace roci {
namespace {

constexpr uint16_t kDontFragment = 0x4000;

struct TlvHeader {
  uint8_t type = 0;
  uint8_t length = 0;
};
struct EcnValue {
  Be32 packets, marked;
};
struct AuthValue {
  Be32 sequence;
  Be64 mac;
};
struct FlowPorts {
  Be16 source, destination;
};
static_assert(sizeof(TlvHeader) == 2 && sizeof(EcnValue) == 8 && sizeof(AuthValue) == 12);

template <class T>
T load(const uint8_t* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

// Returns 0 for an unknown type.
uint32_t tlv_value_bytes(uint8_t type) {
  switch (static_cast<L3CnmTlv>(type)) {
    case L3CnmTlv::kAvailableBandwidth:
    case L3CnmTlv::kRateChange:
      return 4;
    case L3CnmTlv::kPort:
      return sizeof(IntHop);
    case L3CnmTlv::kEcn:
      return sizeof(EcnValue);
    case L3CnmTlv::kAuth:
      return sizeof(AuthValue);
  }
  return 0;
}

// Returns false if `to` already has a value.
template <class T>
bool put_once(std::optional<T>& to, const T& value) {
  if (to) return false;
  to = value;
  return true;
}

bool read_tlv(L3CnmTlv type, const uint8_t* value, L3CnmTlvs& tlvs) {
  switch (type) {
    case L3CnmTlv::kAvailableBandwidth:
      return put_once(tlvs.available_bandwidth, load<Be32>(value).get());
    case L3CnmTlv::kRateChange:
      return put_once(tlvs.rate_change, static_cast<int32_t>(load<Be32>(value).get()));
    case L3CnmTlv::kPort:
      return put_once(tlvs.port, read_hop(load<IntHop>(value)));
    case L3CnmTlv::kEcn: {
      const auto counts = load<EcnValue>(value);
      return put_once(tlvs.ecn, EcnCounts{counts.packets.get(), counts.marked.get()});
    }
    case L3CnmTlv::kAuth:
      return put_once(tlvs.auth_sequence, load<AuthValue>(value).sequence.get());
  }
  return true;
}

L3CnmOutcome parse_tlvs(std::span<const uint8_t> bytes, L3CnmTlvs& tlvs) {
  if (bytes.empty()) return L3CnmOutcome::kNoTlvs;
  while (!bytes.empty()) {
    if (tlvs.auth_sequence) return L3CnmOutcome::kAuthNotLast;
    if (bytes.size() < sizeof(TlvHeader)) return L3CnmOutcome::kTlvBeyondPacket;
    const auto header = load<TlvHeader>(bytes.data());
    const size_t size = sizeof header + header.length;
    if (bytes.size() < size) return L3CnmOutcome::kTlvBeyondPacket;
    if (const uint32_t known = tlv_value_bytes(header.type); known != 0) {
      if (header.length != known) return L3CnmOutcome::kBadTlvLength;
      if (!read_tlv(static_cast<L3CnmTlv>(header.type), bytes.data() + sizeof header, tlvs))
        return L3CnmOutcome::kRepeatedTlv;
    }
    bytes = bytes.subspan(size);
  }
  return L3CnmOutcome::kAccepted;
}

template <class T>
uint8_t* append(uint8_t* to, const T& value) {
  std::memcpy(to, &value, sizeof value);
  return to + sizeof value;
}
template <class T>
uint8_t* append_tlv(uint8_t* to, L3CnmTlv type, const T& value) {
  return append(append(to, TlvHeader{static_cast<uint8_t>(type), sizeof value}), value);
}

uint8_t* append_tlvs(uint8_t* to, const L3CnmTlvs& tlvs) {
  if (tlvs.available_bandwidth)
    to = append_tlv(to, L3CnmTlv::kAvailableBandwidth, Be32{*tlvs.available_bandwidth});
  if (tlvs.rate_change)
    to = append_tlv(to, L3CnmTlv::kRateChange, Be32{static_cast<uint32_t>(*tlvs.rate_change)});
  if (tlvs.port) to = append_tlv(to, L3CnmTlv::kPort, write_hop(*tlvs.port));
  if (tlvs.ecn)
    to = append_tlv(to, L3CnmTlv::kEcn, EcnValue{Be32{tlvs.ecn->packets}, Be32{tlvs.ecn->marked}});
  if (tlvs.auth_sequence) to = append_tlv(to, L3CnmTlv::kAuth, AuthValue{Be32{*tlvs.auth_sequence}, Be64{}});
  return to;
}

uint8_t* append_address(uint8_t* to, const IpAddress& address, bool ipv6) {
  return ipv6 ? append(to, address.bytes) : append(to, Be32{address.v4()});
}

uint8_t* append_flow(uint8_t* to, const FiveTuple& flow, bool tlvs) {
  const bool ipv6 = !flow.source.is_v4();
  L3CnmHeader header;
  header.flags = static_cast<uint8_t>((ipv6 ? L3CnmHeader::kIpv6 : 0) | (tlvs ? L3CnmHeader::kTlvs : 0));
  header.protocol = flow.protocol;
  to = append(to, header);
  to = append_address(to, flow.source, ipv6);
  to = append_address(to, flow.destination, ipv6);
  return append(to, FlowPorts{Be16{flow.source_port}, Be16{flow.destination_port}});
}

IpAddress load_address(const uint8_t* from, bool ipv6) {
  return ipv6 ? IpAddress{load<std::array<uint8_t, 16>>(from)} : IpAddress::from_v4(load<Be32>(from).get());
}

// Reads the flow at the start of `bytes`. The caller has checked the size.
FiveTuple read_flow(const uint8_t* bytes, bool ipv6) {
  const uint32_t address = ipv6 ? 16 : 4;
  const uint8_t* at = bytes + sizeof(L3CnmHeader);
  const auto ports = load<FlowPorts>(at + size_t{2} * address);
  return {load_address(at, ipv6), load_address(at + address, ipv6), load<L3CnmHeader>(bytes).protocol,
          ports.source.get(), ports.destination.get()};
}

// Sum of the UDP packet with its pseudo header, not complemented: all ones if the checksum is correct.
uint16_t udp_sum(const uint8_t* ip, const UdpHeader& udp, bool ipv6) {
  uint32_t sum = rte_raw_cksum(reinterpret_cast<const uint8_t*>(&udp), udp.length.get());
  sum += ipv6 ? rte_ipv6_phdr_cksum(reinterpret_cast<const rte_ipv6_hdr*>(ip), 0)
              : rte_ipv4_phdr_cksum(reinterpret_cast<const rte_ipv4_hdr*>(ip), 0);
  return static_cast<uint16_t>((sum & 0xffff) + (sum >> 16));
}

bool has_right_checksum(const uint8_t* frame, const UdpLocation& where) {
  const auto& udp = *reinterpret_cast<const UdpHeader*>(frame + where.l4_offset);
  if (udp.checksum.get() == 0) return !where.ipv6;
  return udp_sum(frame + where.l3_offset, udp, where.ipv6) == 0xffff;
}

void put_udp_checksum(const uint8_t* ip, UdpHeader& udp, bool ipv6) {
  udp.checksum = Be16{};
  const auto checksum = static_cast<uint16_t>(~udp_sum(ip, udp, ipv6));
  udp.checksum = std::bit_cast<Be16>(checksum == 0 ? uint16_t{0xffff} : checksum);
}

L3CnmOutcome outcome_of(UdpOutcome outcome) {
  switch (outcome) {
    case UdpOutcome::kFound:
      return L3CnmOutcome::kAccepted;
    case UdpOutcome::kNotUdp:
      return L3CnmOutcome::kNotL3Cnm;
    case UdpOutcome::kTruncated:
      return L3CnmOutcome::kTruncated;
    case UdpOutcome::kBadIp:
    case UdpOutcome::kFragment:
    case UdpOutcome::kBadUdp:
      break;
  }
  return L3CnmOutcome::kBadIp;
}

IpAddress destination_of(const uint8_t* frame, const UdpLocation& where) {
  const uint8_t* ip = frame + where.l3_offset;
  if (where.ipv6) return IpAddress{reinterpret_cast<const Ipv6Header*>(ip)->destination};
  return IpAddress::from_v4(reinterpret_cast<const Ipv4Header*>(ip)->destination.get());
}

L3CnmOutcome parse_payload(L3CnmView& view, std::span<const uint8_t> frame) {
  const uint32_t flow_offset = view.udp.l4_offset + static_cast<uint32_t>(sizeof(UdpHeader));
  const auto payload = frame.subspan(flow_offset, view.udp.end - flow_offset);
  if (payload.size() < sizeof(L3CnmHeader)) return L3CnmOutcome::kTooShort;
  const auto header = load<L3CnmHeader>(payload.data());
  if (header.version_type != L3CnmHeader::kVersionType) return L3CnmOutcome::kBadVersion;
  if ((header.flags & ~(L3CnmHeader::kIpv6 | L3CnmHeader::kTlvs)) != 0 || header.reserved != 0)
    return L3CnmOutcome::kReservedBits;
  const bool ipv6 = (header.flags & L3CnmHeader::kIpv6) != 0;
  const uint32_t flow_bytes = l3_cnm_flow_bytes(ipv6);
  if (payload.size() < flow_bytes) return L3CnmOutcome::kTooShort;
  view.flow = read_flow(payload.data(), ipv6);
  if (ipv6 && (view.flow.source.is_v4() || view.flow.destination.is_v4())) return L3CnmOutcome::kBadFlow;
  if (ipv6 != view.udp.ipv6 || view.flow.source != destination_of(frame.data(), view.udp))
    return L3CnmOutcome::kNotToSender;
  view.pdu_offset = flow_offset + flow_bytes;
  const ParsedCnm parsed = parse_cnm(payload.subspan(flow_bytes));
  view.pdu = parsed.outcome;
  if (parsed.outcome != CnmOutcome::kAccepted) return L3CnmOutcome::kBadPdu;
  view.cnm = parsed.cnm;
  const auto behind = payload.subspan(flow_bytes + parsed.cnm.pdu_bytes());
  if ((header.flags & L3CnmHeader::kTlvs) != 0) return parse_tlvs(behind, view.tlvs);
  return behind.empty() ? L3CnmOutcome::kAccepted : L3CnmOutcome::kTrailingBytes;
}

// MAC of a message whose last TLV is AUTH.
uint64_t mac_of(std::span<const uint8_t> frame, const L3CnmView& view, const SipKey& key) {
  const UdpLocation& udp = view.udp;
  const uint32_t payload = udp.l4_offset + static_cast<uint32_t>(sizeof(UdpHeader));
  SipHash hash(key);
  hash.update(udp.ipv6 ? frame.subspan(udp.l3_offset + 8, 32) : frame.subspan(udp.l3_offset + 12, 8));
  hash.update(frame.subspan(payload, udp.end - payload - sizeof(Be64)));
  return hash.finish();
}

}  // namespace

std::string_view l3_cnm_outcome_name(L3CnmOutcome outcome) {
  constexpr std::string_view kNames[kL3CnmOutcomeCount] = {
      "accepted",     "not an L3 CNM",     "truncated",      "bad IP",
      "bad checksum", "too short",         "bad version",    "reserved bits",
      "bad flow",     "not to the sender", "bad PDU",        "trailing bytes",
      "no TLVs",      "TLV beyond packet", "bad TLV length", "repeated TLV",
      "AUTH not last"};
  return kNames[static_cast<unsigned>(outcome)];
}

uint32_t L3CnmTlvs::bytes() const {
  const auto of = [](bool there, size_t value) {
    return there ? static_cast<uint32_t>(sizeof(TlvHeader) + value) : 0U;
  };
  return of(available_bandwidth.has_value(), 4) + of(rate_change.has_value(), 4) +
         of(port.has_value(), sizeof(IntHop)) + of(ecn.has_value(), sizeof(EcnValue)) +
         of(auth_sequence.has_value(), sizeof(AuthValue));
}

L3CnmView parse_l3_cnm(std::span<const uint8_t> frame, uint16_t port) {
  L3CnmView view;
  view.udp = find_udp(frame, static_cast<uint32_t>(frame.size()));
  view.outcome = outcome_of(view.udp.outcome);
  if (!view.accepted()) return view;
  const auto& udp = *reinterpret_cast<const UdpHeader*>(frame.data() + view.udp.l4_offset);
  if (udp.destination_port.get() != port) {
    view.outcome = L3CnmOutcome::kNotL3Cnm;
  } else if (!has_right_checksum(frame.data(), view.udp)) {
    view.outcome = L3CnmOutcome::kBadChecksum;
  } else {
    view.outcome = parse_payload(view, frame);
  }
  return view;
}

uint32_t build_l3_cnm(const RocePath& path, uint16_t port, const FiveTuple& flow, const Cnm& cnm,
                      const L3CnmTlvs& tlvs, std::span<uint8_t> out) {
  const bool ipv6 = !path.destination_ip.is_v4();
  assert(flow.source == path.destination_ip && flow.source.is_v4() == flow.destination.is_v4());
  const LinkHeader link{path.destination_mac, path.source_mac, path.vlan_id};
  const uint32_t l4_offset =
      link.size() + static_cast<uint32_t>(ipv6 ? sizeof(Ipv6Header) : sizeof(Ipv4Header));
  const uint32_t tlv_bytes = tlvs.bytes();
  const uint32_t udp_bytes =
      static_cast<uint32_t>(sizeof(UdpHeader)) + l3_cnm_flow_bytes(ipv6) + cnm.pdu_bytes() + tlv_bytes;
  assert(out.size() >= l4_offset + udp_bytes);

  link.write(out.data(), ipv6 ? kEtherTypeIpv6 : kEtherTypeIpv4);
  if (path.vlan_id != 0) {
    auto& tag = *reinterpret_cast<VlanHeader*>(out.data() + sizeof(EthernetHeader));
    tag.tci.set(static_cast<uint16_t>(path.priority << 13 | (path.vlan_id & 0xfff)));
  }
  uint8_t* ip_at = out.data() + link.size();
  auto& udp = *reinterpret_cast<UdpHeader*>(out.data() + l4_offset);
  udp = {Be16{path.udp_source_port}, Be16{port}, Be16{static_cast<uint16_t>(udp_bytes)}, Be16{}};
  uint8_t* to = append_flow(out.data() + l4_offset + sizeof udp, flow, tlv_bytes != 0);
  write_cnm(cnm, to);
  append_tlvs(to + cnm.pdu_bytes(), tlvs);
  if (ipv6) {
    Ipv6Header ip;
    ip.version_class_flow.set(6U << 28 | static_cast<uint32_t>(path.traffic_class) << 20 |
                              (path.flow_label & 0xfffff));
    ip.payload_length.set(static_cast<uint16_t>(udp_bytes));
    ip.hop_limit = path.hop_limit;
    ip.source = path.source_ip.bytes;
    ip.destination = path.destination_ip.bytes;
    append(ip_at, ip);
  } else {
    Ipv4Header ip;
    ip.tos = path.traffic_class;
    ip.total_length.set(static_cast<uint16_t>(sizeof ip + udp_bytes));
    ip.flags_fragment.set(kDontFragment);
    ip.ttl = path.hop_limit;
    ip.source.set(path.source_ip.v4());
    ip.destination.set(path.destination_ip.v4());
    ip.checksum = std::bit_cast<Be16>(inet_checksum(&ip, sizeof ip));
    append(ip_at, ip);
  }
  put_udp_checksum(ip_at, udp, ipv6);
  return l4_offset + udp_bytes;
}

bool sign_l3_cnm(std::span<uint8_t> frame, uint16_t port, const SipKey& key) {
  const L3CnmView view = parse_l3_cnm(frame, port);
  if (!view.accepted() || !view.tlvs.auth_sequence) return false;
  const Be64 mac{mac_of(frame, view, key)};
  std::memcpy(frame.data() + view.udp.end - sizeof mac, &mac, sizeof mac);
  put_udp_checksum(frame.data() + view.udp.l3_offset,
                   *reinterpret_cast<UdpHeader*>(frame.data() + view.udp.l4_offset), view.udp.ipv6);
  return true;
}

bool verify_l3_cnm(std::span<const uint8_t> frame, const L3CnmView& view, const SipKey& key) {
  if (!view.accepted() || !view.tlvs.auth_sequence) return false;
  const auto stored = load<Be64>(frame.data() + view.udp.end - sizeof(Be64));
  return is_same_mac(stored.get(), mac_of(frame, view, key));
}

bool to_l2_cnm(FrameFront& frame, const L3CnmView& view, const CnmLink& link) {
  assert(view.accepted());
  if (frame.head_length != frame.length || frame.headroom + view.pdu_offset < link.size()) return false;
  const uint32_t length = link.size() + view.cnm.pdu_bytes();
  uint8_t* begin = frame.data + view.pdu_offset - link.size();
  link.write(begin);
  frame.headroom = frame.headroom + view.pdu_offset - link.size();
  frame.data = begin;
  frame.length = frame.head_length = length;
  return true;
}

}  // namespace roci
