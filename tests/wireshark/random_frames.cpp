#include "wireshark/random_frames.hpp"

#include <rte_ip.h>

#include <algorithm>
#include <bit>

#include "wire/cnm/l3_congestion_notification.hpp"
#include "wire/headers/checksum.hpp"
#include "wire/int/telemetry_edit.hpp"
#include "wire/mad/capability_mad.hpp"
#include "wire/net/pause.hpp"
#include "wire/roce/roce_cnp.hpp"
#include "wire/wire_test_support.hpp"

namespace roci::test {
namespace {

constexpr uint32_t kMtu = 9000;

uint8_t u8(Rng& rng) { return static_cast<uint8_t>(rng.next()); }
uint16_t u16(Rng& rng) { return static_cast<uint16_t>(rng.next()); }
uint32_t u32(Rng& rng) { return static_cast<uint32_t>(rng.next()); }
bool coin(Rng& rng) { return rng.chance(0.5); }

// tshark tries the dissector of the lower port first, so source ports are as high as those of RoCEv2.
uint16_t source_port(Rng& rng) { return static_cast<uint16_t>(rng.between(0xc000, 0xffff)); }

IpAddress random_address(Rng& rng, bool ipv6) {
  if (!ipv6) return IpAddress::from_v4(u32(rng));
  IpAddress address;
  for (uint8_t& byte : address.bytes) byte = u8(rng);
  return address;
}

Packet random_packet_for_tshark(Rng& rng, Opcode opcode) {
  auto lengths = payload_lengths(opcode_info(opcode));
  std::erase_if(lengths, [](size_t length) { return length > 1024; });
  Packet p = random_packet(rng, opcode, coin(rng), static_cast<unsigned>(rng.below(3)),
                           lengths[rng.below(lengths.size())]);
  p.cn_flow.reset();  // added by random_cn_tagged()
  p.udp_source_port = source_port(rng);
  if (!p.ipv6()) std::fill(p.v4().options.begin(), p.v4().options.end(), uint8_t{1});  // no-operation options
  p.finish();
  return p;
}

uint32_t bth_offset(const Bytes& frame) {
  const auto where = find_udp(frame, static_cast<uint32_t>(frame.size()));
  return where.l4_offset + static_cast<uint32_t>(sizeof(UdpHeader));
}

// Sets IP and UDP lengths and checksums of a frame whose UDP packet extends to its end.
void put_lengths_and_checksums(Bytes& frame) {
  const uint32_t l3 = parse_link_tags(frame)->l3_offset();
  uint8_t* at = frame.data() + l3;
  const auto bytes = static_cast<uint16_t>(frame.size() - l3);
  const bool ipv6 = *at >> 4 == 6;
  const auto header = static_cast<uint16_t>(ipv6 ? sizeof(Ipv6Header) : (*at & 0xfU) * 4);
  auto& udp = *reinterpret_cast<UdpHeader*>(at + header);
  udp.length.set(static_cast<uint16_t>(bytes - header));
  udp.checksum = Be16{};
  if (ipv6) {
    reinterpret_cast<Ipv6Header*>(at)->payload_length = udp.length;
    udp.checksum =
        std::bit_cast<Be16>(rte_ipv6_udptcp_cksum(reinterpret_cast<const rte_ipv6_hdr*>(at), &udp));
    return;
  }
  auto& ip = *reinterpret_cast<Ipv4Header*>(at);
  ip.total_length.set(bytes);
  ip.checksum = Be16{};
  ip.checksum = std::bit_cast<Be16>(inet_checksum(at, header));
  udp.checksum = std::bit_cast<Be16>(rte_ipv4_udptcp_cksum(reinterpret_cast<const rte_ipv4_hdr*>(at), &udp));
}

LinkTags random_tags(Rng& rng) {
  LinkTags tags;
  tags.vlan_count = static_cast<uint8_t>(rng.below(kMaxVlanTags + 1));
  for (unsigned i = 0; i < tags.vlan_count; ++i)
    tags.vlan[i] = {tags.vlan_count == 2 && i == 0 ? kEtherTypeSTag : kEtherTypeVlan, u16(rng)};
  if (rng.chance(0.7)) tags.flow = u16(rng);
  return tags;
}

// A CNM about a sampled frame, which is stored in `sampled`.
Cnm random_cnm_of(Rng& rng, Bytes& sampled) {
  const auto table = opcode_table();
  sampled = encode_packet(random_packet_for_tshark(rng, table[rng.below(table.size())].opcode));
  if (coin(rng)) {
    RoomyFrame roomy(sampled);
    (void)insert_cn_tag(roomy.front, u16(rng));
    sampled = roomy.bytes();
  }
  if (rng.chance(0.2)) sampled.resize(rng.between(30, sampled.size()));
  Cnm cnm = *sample_frame(sampled, static_cast<uint8_t>(rng.below(8)));
  cnm.feedback = static_cast<uint8_t>(rng.below(kMaxCnmFeedback + 1));
  cnm.point = {MacAddress::local(rng.next()), Be16{u16(rng)}};
  cnm.queue_offset = static_cast<int16_t>(u16(rng));
  cnm.queue_delta = static_cast<int16_t>(u16(rng));
  if (rng.chance(0.1)) cnm.msdu = {};
  return cnm;
}

IntSource random_source(Rng& rng) {
  IntSource source;
  source.port = kIntPort;
  source.domain = u16(rng);
  source.domain_flags = u16(rng);
  source.discard = coin(rng);
  source.hops = static_cast<uint8_t>(rng.below(8));
  constexpr uint16_t kForms[] = {int_domain_instruction::kCompactHop, int_domain_instruction::kFullHop, 0,
                                 int_domain_instruction::kCompactHop | int_domain_instruction::kFullHop};
  source.domain_instructions = kForms[rng.chance(0.6) ? rng.below(2) : rng.below(4)];
  while (rng.chance(0.7) || int_hop_words(source) == 0)
    source.instructions ^= static_cast<uint16_t>(1U << rng.below(16));
  return source;
}

HopReport random_report(Rng& rng) {
  HopReport r;
  r.switch_id = u32(rng);
  r.ingress_port = u16(rng);
  r.egress_port = u16(rng);
  r.queue = u8(rng);
  r.ingress_time = rng.next();
  r.egress_time = rng.next();
  r.tx_bytes = rng.next();
  r.queue_bytes = rng.next() >> rng.below(64);
  r.rate = BitsPerSec{rng.chance(0.2) ? 0 : rng.next() >> rng.below(40)};
  return r;
}

}  // namespace

RandomFrame random_roce(Rng& rng, Opcode opcode) {
  return {.kind = std::string(opcode_info(opcode).name),
          .bytes = encode_packet(random_packet_for_tshark(rng, opcode))};
}

RandomFrame random_block(Rng& rng, Opcode opcode) {
  const OpcodeInfo& info = opcode_info(opcode);
  Packet p = random_packet_for_tshark(rng, opcode);
  p.with_extensions(random_extensions(rng));
  if (info.payload == PayloadRule::kNone) p.with_payload({});
  RandomFrame frame{.kind = std::string(info.name) + " with a block", .bytes = encode_packet(p.finish())};
  frame.begin = bth_offset(frame.bytes) + info.header_bytes;
  frame.end = frame.begin + p.extensions->bytes();
  return frame;
}

RandomFrame random_cn_tagged(Rng& rng) {
  const auto table = opcode_table();
  RoomyFrame frame(encode_packet(random_packet_for_tshark(rng, table[rng.below(table.size())].opcode)));
  (void)insert_cn_tag(frame.front, u16(rng));
  return {.kind = "CN-TAG", .bytes = frame.bytes()};
}

RandomFrame random_cnm(Rng& rng) {
  Bytes sampled;
  const Cnm cnm = random_cnm_of(rng, sampled);
  const CnmLink link{MacAddress::local(rng.next()), MacAddress::local(rng.next()), random_tags(rng)};
  RandomFrame frame{.kind = "CNM", .bytes = Bytes(kMaxCnmFrame)};
  const uint32_t length = build_cnm_frame(link, cnm, frame.bytes);
  // With or without padding, as on ports in memory.
  frame.bytes.resize(std::max<size_t>(length, rng.below(80)));
  frame.begin = link.size();
  frame.end = frame.begin + sizeof(CnmPdu);
  return frame;
}

RandomFrame random_l3_cnm(Rng& rng) {
  const bool ipv6 = coin(rng);
  Bytes sampled;
  const Cnm cnm = random_cnm_of(rng, sampled);
  const FiveTuple flow{random_address(rng, ipv6), random_address(rng, ipv6),
                       static_cast<uint8_t>(coin(rng) ? 17 : u8(rng)), u16(rng), u16(rng)};
  RocePath path;
  path.source_mac = MacAddress::local(rng.next());
  path.destination_mac = MacAddress::local(rng.next());
  path.source_ip = random_address(rng, ipv6);
  path.destination_ip = flow.source;
  path.vlan_id = static_cast<uint16_t>(coin(rng) ? rng.below(4096) : 0);
  path.priority = static_cast<uint8_t>(rng.below(8));
  path.udp_source_port = source_port(rng);
  path.traffic_class = u8(rng);
  L3CnmTlvs tlvs;
  if (coin(rng)) tlvs.available_bandwidth = u32(rng);
  if (coin(rng)) tlvs.rate_change = static_cast<int32_t>(u32(rng));
  if (coin(rng)) tlvs.port = random_hop(rng);
  if (coin(rng)) tlvs.ecn = EcnCounts{u32(rng), u32(rng)};
  if (coin(rng)) tlvs.auth_sequence = u32(rng);
  RandomFrame frame{.kind = "self-defined CNM", .bytes = Bytes(kMaxL3CnmFrame)};
  frame.bytes.resize(build_l3_cnm(path, kNotificationPort, flow, cnm, tlvs, frame.bytes));
  if (tlvs.auth_sequence) {
    (void)sign_l3_cnm(frame.bytes, kNotificationPort, SipKey{u8(rng), u8(rng)});
  } else if (tlvs.bytes() != 0 && coin(rng)) {  // with an unknown TLV
    const Bytes value = random_bytes(rng, rng.below(20));
    frame.bytes.push_back(static_cast<uint8_t>(rng.between(6, 255)));
    frame.bytes.push_back(static_cast<uint8_t>(value.size()));
    frame.bytes.insert(frame.bytes.end(), value.begin(), value.end());
    put_lengths_and_checksums(frame.bytes);
  }
  frame.begin = bth_offset(frame.bytes);
  frame.end = frame.bytes.size();
  return frame;
}

RandomFrame random_int(Rng& rng) {
  constexpr uint32_t kHeadroom = 2048;
  const auto table = opcode_table();
  RoomyFrame frame(encode_packet(random_packet_for_tshark(rng, table[rng.below(table.size())].opcode)),
                   kHeadroom);
  IntSource source;
  do {
    source = random_source(rng);
  } while (begin_int(frame.front, source, kMtu) != IntEdit::kDone);
  for (uint64_t hops = rng.below(6); hops > 0; --hops) {
    const IntView view = parse_int(frame.front.head(), frame.front.length, kIntPort);
    const auto domain = static_cast<uint16_t>(source.domain ^ (rng.chance(0.1) ? 1 : 0));
    (void)push_int_hop(frame.front, view, random_report(rng), domain, rng.chance(0.1) ? 100 : kMtu);
  }
  const IntView view = parse_int(frame.front.head(), frame.front.length, kIntPort);
  return {.kind = "INT", .bytes = frame.bytes(), .begin = view.shim_offset(), .end = view.stack_offset()};
}

RandomFrame random_capabilities(Rng& rng) {
  CapabilityMessage message;
  message.response = coin(rng);
  message.transaction = rng.next();
  message.offer.version = static_cast<uint8_t>(coin(rng) ? 1 : rng.between(1, 255));
  message.offer.capabilities = u32(rng);
  message.offer.mtu_extra = u16(rng);
  message.offer.int_hops = u8(rng);
  message.offer.window = u32(rng);
  message.offer.time_unit = u32(rng) | 1;
  message.offer.incarnation = rng.next() | 1;
  if (message.response) message.peer_incarnation = rng.next() | 1;
  if ((message.offer.capabilities & bit_of(ExtensionType::kAuth)) != 0) {
    for (uint8_t& byte : message.offer.auth) byte = static_cast<uint8_t>(u8(rng) | 1);
  }
  constexpr auto kNetworkAuth = static_cast<uint32_t>(Capability::kNetworkAuth);
  if (message.offer.version >= kSignedCapabilityVersion && (message.offer.capabilities & kNetworkAuth) != 0) {
    for (uint8_t& byte : message.offer.network_auth) byte = static_cast<uint8_t>(u8(rng) | 1);
    message.mac = rng.next() | 1;
  }
  CapabilityMad mad = build_capability_mad(message);
  if (message.response && rng.chance(0.2))
    mad.mad.status.set(0x000c);  // from an agent that does not support the class
  Packet p = random_packet_for_tshark(rng, Opcode::kUdSendOnly);
  p.extensions.reset();
  p.bth.reserved7 = 0;
  p.to(kManagementQp, Psn{7});
  const auto* bytes = reinterpret_cast<const uint8_t*>(&mad);
  p.with_payload({bytes, sizeof mad});
  RandomFrame frame{.kind = "capability exchange", .bytes = encode_packet(p.finish())};
  frame.begin = bth_offset(frame.bytes) + opcode_info(Opcode::kUdSendOnly).header_bytes;
  frame.end = frame.begin + 100;
  return frame;
}

RandomFrame random_pause(Rng& rng) {
  PauseMessage message;
  message.source = MacAddress::local(rng.next());
  message.kind = coin(rng) ? PauseKind::kLink : PauseKind::kPriority;
  message.classes = u8(rng);
  for (uint16_t& quanta : message.quanta) quanta = u16(rng);
  RandomFrame frame{.kind = "pause", .bytes = Bytes(kPauseFrameBytes)};
  build_pause(message, std::span<uint8_t, kPauseFrameBytes>(frame.bytes));
  return frame;
}

RandomFrame random_cnp(Rng& rng) {
  const bool ipv6 = coin(rng);
  RocePath path;
  path.source_mac = MacAddress::local(rng.next());
  path.destination_mac = MacAddress::local(rng.next());
  path.source_ip = random_address(rng, ipv6);
  path.destination_ip = random_address(rng, ipv6);
  path.udp_source_port = source_port(rng);
  path.traffic_class = kFeedbackTrafficClass;
  RandomFrame frame{.kind = "CNP", .bytes = Bytes(kMaxCnpFrame)};
  frame.bytes.resize(build_cnp(path, Qpn{u32(rng) & 0xffffff}, frame.bytes, PKey{u16(rng)}));
  return frame;
}

std::vector<RandomFrame> random_frames(Rng& rng, unsigned count, unsigned each_opcode) {
  std::vector<RandomFrame> out;
  for (const OpcodeInfo& info : opcode_table()) {
    for (unsigned i = 0; i < each_opcode; ++i) {
      out.push_back(random_roce(rng, info.opcode));
      out.push_back(random_block(rng, info.opcode));
    }
  }
  for (unsigned i = 0; i < count; ++i) {
    for (auto* make : {random_cn_tagged, random_cnm, random_l3_cnm, random_int, random_capabilities,
                       random_pause, random_cnp})
      out.push_back(make(rng));
  }
  return out;
}

Bytes damaged(Rng& rng, const RandomFrame& frame, size_t place) {
  Bytes bytes = frame.bytes;
  const bool udp = frame.kind != "CNM";
  if (udp) bytes.resize(find_udp(bytes, static_cast<uint32_t>(bytes.size())).end);  // without padding
  const auto how = rng.below(10);
  if (how == 0) {
    bytes.insert(bytes.end(), 4, 0);
  } else if (how == 1) {
    bytes.resize(rng.between(frame.begin + 1, std::min(frame.end, bytes.size())));
  } else if (how == 2 && frame.kind == "self-defined CNM" &&
             parse_link_tags(bytes)->ether_type == kEtherTypeIpv6) {
    std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(frame.begin) + 20, 10,
                uint8_t{0});  // ::ffff:a.b.c.d
    std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(frame.begin) + 30, 2, uint8_t{0xff});
  } else {
    uint8_t& byte = bytes[frame.begin + place % (std::min(frame.end, bytes.size()) - frame.begin)];
    const uint8_t values[] = {static_cast<uint8_t>(byte ^ 1U << rng.below(8)),
                              static_cast<uint8_t>(rng.below(6)), u8(rng)};
    byte = values[rng.below(3)];
  }
  if (udp) put_lengths_and_checksums(bytes);
  return bytes;
}

}  // namespace roci::test
