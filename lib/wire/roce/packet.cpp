#include "wire/roce/packet.hpp"

#include <rte_byteorder.h>

#include <bit>
#include <cassert>
#include <string>

#include "wire/headers/aeth.hpp"
#include "wire/headers/checksum.hpp"
#include "wire/icrc/icrc.hpp"
#include "wire/net/link_tags.hpp"

namespace roci {
namespace {

template <class T>
void append(ByteVector& out, const T& header) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(&header);
  out.insert(out.end(), bytes, bytes + sizeof header);
}
void append_bytes(ByteVector& out, std::span<const uint8_t> bytes) {
  out.insert(out.end(), bytes.begin(), bytes.end());
}
ByteVector copy_bytes(const uint8_t* from, size_t length) { return {from, from + length}; }

// Converts the sum from inet_checksum() from memory order to a number.
uint16_t checksum_value(std::span<const uint8_t> bytes) {
  return rte_be_to_cpu_16(inet_checksum(bytes.data(), bytes.size()));
}

void append_ethernet(ByteVector& out, const Packet& p) {
  assert(p.vlan_tags.size() <= 2);
  out.insert(out.end(), p.destination_mac.bytes.begin(), p.destination_mac.bytes.end());
  out.insert(out.end(), p.source_mac.bytes.begin(), p.source_mac.bytes.end());
  for (const VlanTag& tag : p.vlan_tags) {
    append(out, Be16{tag.tpid});
    append(out, Be16{tag.tci});
  }
  if (p.cn_flow) append(out, CnTag{Be16{kEtherTypeCnTag}, Be16{*p.cn_flow}});
  append(out, Be16{p.ipv6() ? kEtherTypeIpv6 : kEtherTypeIpv4});
}

void append_ip(ByteVector& out, const Packet& p, uint32_t udp_length) {
  if (p.ipv6()) {
    const Ipv6Values& ip = p.v6();
    Ipv6Header header;
    header.version_class_flow.set(6U << 28 | static_cast<uint32_t>(ip.traffic_class) << 20 |
                                  (ip.flow_label & 0xfffff));
    header.payload_length.set(static_cast<uint16_t>(udp_length));
    header.hop_limit = ip.hop_limit;
    header.source = p.source.bytes;
    header.destination = p.destination.bytes;
    append(out, header);
    return;
  }
  const Ipv4Values& ip = p.v4();
  assert(ip.options.size() % 4 == 0 && ip.options.size() <= 40);
  const uint32_t header_length = static_cast<uint32_t>(sizeof(Ipv4Header) + ip.options.size());
  Ipv4Header header;
  header.version_ihl = static_cast<uint8_t>(0x40 | header_length / 4);
  header.tos = ip.tos;
  header.total_length.set(static_cast<uint16_t>(header_length + udp_length));
  header.id.set(ip.id);
  header.flags_fragment.set(ip.flags_fragment);
  header.ttl = ip.ttl;
  header.checksum.set(ip.checksum);
  header.source = Be32{p.source.v4()};
  header.destination = Be32{p.destination.v4()};
  append(out, header);
  append_bytes(out, ip.options);
}

void append_bth(ByteVector& out, const BthValues& bth, size_t pad) {
  assert(pad <= 3);
  Bth header;
  header.opcode = static_cast<uint8_t>(bth.opcode);
  header.flags = static_cast<uint8_t>((bth.solicited ? Bth::kSolicited : 0) |
                                      (bth.mig_req ? Bth::kMigReq : 0) | pad << 4 | (bth.version & 0xf));
  header.pkey.set(bth.pkey.value());
  header.congestion = static_cast<uint8_t>((bth.fecn ? Bth::kFecn : 0) | (bth.becn ? Bth::kBecn : 0) |
                                           (bth.reserved6 & 0x3f));
  header.destination_qp.set(bth.destination_qp.value());
  header.ack_request = static_cast<uint8_t>((bth.ack_request ? Bth::kAckReq : 0) | (bth.reserved7 & 0x7f));
  header.psn.set(bth.psn.value());
  append(out, header);
}

void append_extended(ByteVector& out, const Packet& p) {
  if (p.deth) {
    append(out, Deth{Be32{p.deth->qkey.value()}, p.deth->reserved, Be24{p.deth->source_qp.value()}});
  }
  if (p.xrc_eth) append(out, XrcEth{p.xrc_eth->reserved, Be24{p.xrc_eth->srq.value()}});
  if (p.feth)
    append(out, Feth{Be32{p.feth->reserved << 6 | (p.feth->level & 3U) << 4 | (p.feth->type & 0xfU)}});
  if (p.reth) append(out, Reth{Be64{p.reth->va}, Be32{p.reth->rkey.value()}, Be32{p.reth->length}});
  if (p.atomic_eth) {
    append(out, AtomicEth{Be64{p.atomic_eth->va}, Be32{p.atomic_eth->rkey.value()},
                          Be64{p.atomic_eth->swap_or_add}, Be64{p.atomic_eth->compare}});
  }
  if (p.aeth) append(out, Aeth{p.aeth->syndrome, Be24{p.aeth->msn.value()}});
  if (p.atomic_ack) append(out, AtomicAckEth{Be64{*p.atomic_ack}});
  if (p.imm) append(out, ImmDt{Be32{*p.imm}});
  if (p.ieth) append(out, Ieth{Be32{p.ieth->value()}});
  if (p.cnp_reserved) append(out, CnpReserved{*p.cnp_reserved});
  if (p.probe) {
    const ProbeValues& v = *p.probe;
    append(out, Probe{Be32{v.id}, Be16{v.flags}, Be16{v.reserved}, Be64{v.sent}, Be64{v.lsn.value()}});
  }
  if (p.probe_times) {
    append(out, ProbeTimes{Be64{p.probe_times->received}, Be64{p.probe_times->answered}, p.probe_times->raw});
  }
  if (p.int_report) {
    const IntReportValues& v = *p.int_report;
    append(out, IntReport{Be16{v.flags}, Be16{v.reserved}, Be64{v.lsn.value()}, write_hop(v.hop),
                          std::bit_cast<Bth>(v.sampled)});
  }
  if (p.extensions) {
    ByteVector block(p.extensions->bytes());
    write_extensions(*p.extensions, block);
    append_bytes(out, block);
  }
}

// Encodes the packet up to the ICRC, and stores in `view` the header offsets that compute_icrc() requires.
// parse_frame() cannot provide the view, because packets that it rejects need a correct ICRC too.
ByteVector encode_covered(const Packet& p, FrameView& view) {
  ByteVector from_bth;
  append_bth(from_bth, p.bth, p.pad.size());
  append_extended(from_bth, p);
  append_bytes(from_bth, p.payload);
  append_bytes(from_bth, p.pad);
  const auto udp_length = static_cast<uint32_t>(sizeof(UdpHeader) + from_bth.size()) + kIcrcBytes;
  assert(udp_length + 60 <= 0xffff);

  ByteVector out;
  append_ethernet(out, p);
  view.l3_offset = static_cast<uint16_t>(out.size());
  append_ip(out, p, udp_length);
  view.l4_offset = static_cast<uint16_t>(out.size());
  append(out, UdpHeader{Be16{p.udp_source_port}, Be16{p.udp_destination_port},
                        Be16{static_cast<uint16_t>(udp_length)}, Be16{p.udp_checksum}});
  view.bth_offset = static_cast<uint16_t>(out.size());
  append_bytes(out, from_bth);
  view.icrc_offset = static_cast<uint32_t>(out.size());
  view.ipv6 = p.ipv6();
  view.vlan_tags = static_cast<uint8_t>(p.vlan_tags.size());
  view.cn_tag = p.cn_flow.has_value();
  view.frame = out.data();
  return out;
}

BthValues decode_bth(const Bth& bth) {
  BthValues v;
  v.opcode = static_cast<Opcode>(bth.opcode);
  v.solicited = bth.solicited();
  v.mig_req = (bth.flags & Bth::kMigReq) != 0;
  v.version = bth.version();
  v.pkey = PKey{bth.pkey.get()};
  v.fecn = (bth.congestion & Bth::kFecn) != 0;
  v.becn = (bth.congestion & Bth::kBecn) != 0;
  v.reserved6 = bth.congestion & 0x3f;
  v.destination_qp = Qpn{bth.destination_qp.get()};
  v.ack_request = bth.ack_requested();
  v.reserved7 = bth.ack_request & 0x7f;
  v.psn = Psn{bth.psn.get()};
  return v;
}

void decode_extended(Packet& p, const FrameView& view) {
  const OpcodeInfo& info = *view.opcode;
  if (info.has(Header::kDeth)) {
    const Deth& h = view.deth();
    p.deth = DethValues{QKey{h.qkey.get()}, h.reserved, Qpn{h.source_qp.get()}};
  }
  if (info.has(Header::kXrcEth)) {
    p.xrc_eth = XrcEthValues{view.extended<XrcEth>(Header::kXrcEth).reserved, view.xrc_srq()};
  }
  if (info.has(Header::kFeth)) {
    const Feth& h = view.feth();
    p.feth = FethValues{h.type(), h.level(), h.value.get() >> 6};
  }
  if (info.has(Header::kReth)) {
    const Reth& h = view.reth();
    p.reth = RethValues{h.va.get(), MemoryKey{h.rkey.get()}, h.length.get()};
  }
  if (info.has(Header::kAtomicEth)) {
    const AtomicEth& h = view.atomic_eth();
    p.atomic_eth = AtomicEthValues{h.va.get(), MemoryKey{h.rkey.get()}, h.swap_or_add.get(), h.compare.get()};
  }
  if (info.has(Header::kAeth)) p.aeth = AethValues{view.aeth().syndrome, Msn{view.aeth().msn.get()}};
  if (info.has(Header::kAtomicAckEth)) p.atomic_ack = view.atomic_ack().original.get();
  if (info.has(Header::kImmDt)) p.imm = view.imm().data.get();
  if (info.has(Header::kIeth)) p.ieth = MemoryKey{view.ieth().rkey.get()};
  if (info.has(Header::kCnpReserved)) {
    p.cnp_reserved = view.extended<CnpReserved>(Header::kCnpReserved).zero;
  }
  if (info.has(Header::kProbe)) {
    const Probe& h = view.probe();
    p.probe = ProbeValues{h.id.get(), h.flags.get(), h.reserved.get(), h.sent.get(), Lsn{h.lsn.get()}};
  }
  if (info.has(Header::kProbeTimes)) {
    const ProbeTimes& h = view.probe_times();
    p.probe_times = ProbeTimesValues{h.received.get(), h.answered.get(), h.raw};
  }
  if (info.has(Header::kIntReport)) {
    const IntReport& h = view.int_report();
    p.int_report = IntReportValues{h.flags.get(), h.reserved.get(), Lsn{h.lsn.get()}, read_hop(h.hop),
                                   std::bit_cast<std::array<uint8_t, sizeof(Bth)>>(h.sampled)};
  }
}

}  // namespace

Packet& Packet::to(Qpn destination_qp, Psn psn) {
  bth.destination_qp = destination_qp;
  bth.psn = psn;
  return *this;
}

Packet& Packet::between(const MacAddress& from_mac, const IpAddress& from, const MacAddress& to_mac,
                        const IpAddress& to) {
  source_mac = from_mac;
  source = from;
  destination_mac = to_mac;
  destination = to;
  return *this;
}

Packet& Packet::with_vlan(uint16_t tci, uint16_t tpid) {
  vlan_tags.push_back({tpid, tci});
  return *this;
}

Packet& Packet::with_cn_tag(uint16_t flow) {
  cn_flow = flow;
  return *this;
}

Packet& Packet::with_traffic_class(uint8_t value) {
  (ipv6() ? v6().traffic_class : v4().tos) = value;
  return *this;
}

Packet& Packet::with_payload(std::span<const uint8_t> bytes) {
  payload.assign(bytes.begin(), bytes.end());
  pad.assign(pad_for(static_cast<uint32_t>(bytes.size())), 0);
  return *this;
}

Packet& Packet::requesting_ack() {
  bth.ack_request = true;
  return *this;
}

Packet& Packet::with_xrc_srq(Srqn srq) {
  xrc_eth = XrcEthValues{0, srq};
  return *this;
}

Packet& Packet::with_reth(uint64_t va, MemoryKey rkey, uint32_t length) {
  reth = RethValues{va, rkey, length};
  return *this;
}

Packet& Packet::with_aeth(uint8_t syndrome, Msn msn) {
  aeth = AethValues{syndrome, msn};
  return *this;
}

Packet& Packet::with_imm(uint32_t data) {
  imm = data;
  return *this;
}

Packet& Packet::with_extensions(const ExtensionBlock& block) {
  extensions = block;
  bth.reserved7 |= Bth::kExtensions;
  return *this;
}

Packet& Packet::finish() {
  FrameView view;
  if (!ipv6()) {
    v4().checksum = 0;
    const ByteVector bytes = encode_covered(*this, view);
    v4().checksum = checksum_value(std::span(bytes).subspan(view.l3_offset, view.l4_offset - view.l3_offset));
  }
  const ByteVector covered = encode_covered(*this, view);
  icrc = compute_icrc(view);
  if (udp_checksum != 0) {
    const ByteVector whole = encode_packet(*this);
    view.frame = whole.data();
    udp_checksum = compute_udp_checksum(view);
  }
  return *this;
}

Packet make_packet(Opcode opcode, bool ipv6) {
  Packet p;
  p.between(MacAddress::local(1), IpAddress::from_v4(0x0a000001), MacAddress::local(2),
            IpAddress::from_v4(0x0a000002));
  if (ipv6) {
    p.ip = Ipv6Values{};
    p.source = IpAddress{{0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}};
    p.destination = IpAddress{{0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2}};
  }
  p.bth.opcode = opcode;
  p.bth.becn = opcode == Opcode::kCnp;
  const OpcodeInfo* info = find_opcode(static_cast<uint8_t>(opcode));
  if (info == nullptr) return p;
  if (info->has(Header::kDeth)) p.deth.emplace();
  if (info->has(Header::kXrcEth)) p.xrc_eth.emplace();
  if (info->has(Header::kFeth)) p.feth.emplace();
  if (info->has(Header::kReth)) p.reth.emplace();
  if (info->has(Header::kAtomicEth)) p.atomic_eth.emplace();
  if (info->has(Header::kAeth)) p.aeth = AethValues{kSyndromeAck, Msn{}};
  if (info->has(Header::kAtomicAckEth)) p.atomic_ack = 0;
  if (info->has(Header::kImmDt)) p.imm = 0;
  if (info->has(Header::kIeth)) p.ieth.emplace();
  if (info->has(Header::kCnpReserved)) p.cnp_reserved.emplace();
  if (info->has(Header::kProbe)) p.probe.emplace();
  if (info->has(Header::kProbeTimes)) p.probe_times.emplace();
  if (info->has(Header::kIntReport)) p.int_report.emplace();
  return p;
}

Result<Packet> decode_packet(std::span<const uint8_t> frame) {
  const auto length = static_cast<uint32_t>(frame.size());
  const FrameView view = parse_frame(frame.data(), length, length, OpcodeRange::kWithPrivate);
  if (view.kind != FrameKind::kRoce) {
    return fail("not a RoCEv2 packet that can be decoded: " + std::string(frame_kind_name(view.kind)),
                EBADMSG);
  }
  Packet p;
  p.destination_mac = view.ethernet().destination;
  p.source_mac = view.ethernet().source;
  for (uint32_t i = 0; i < view.vlan_tags; ++i) {
    const auto at = static_cast<uint32_t>(2 * sizeof(MacAddress)) + 4 * i;
    p.vlan_tags.push_back({view.at<Be16>(at).get(), view.at<Be16>(at + 2).get()});
  }
  if (view.cn_tag) p.cn_flow = view.cn_flow();
  p.source = view.source_ip();
  p.destination = view.destination_ip();
  if (view.ipv6) {
    const Ipv6Header& ip = view.ip6();
    p.ip = Ipv6Values{view.traffic_class(), ip.version_class_flow.get() & 0xfffff, ip.hop_limit};
  } else {
    const Ipv4Header& ip = view.ipv4();
    const uint32_t options_at = view.l3_offset + static_cast<uint32_t>(sizeof(Ipv4Header));
    p.ip = Ipv4Values{
        ip.tos, ip.id.get(),       ip.flags_fragment.get(),
        ip.ttl, ip.checksum.get(), copy_bytes(view.frame + options_at, view.l4_offset - options_at)};
  }
  p.udp_source_port = view.udp().source_port.get();
  p.udp_destination_port = view.udp().destination_port.get();
  p.udp_checksum = view.udp().checksum.get();
  p.bth = decode_bth(view.bth());
  decode_extended(p, view);
  const ExtendedPayload split = split_payload(view, length, known_extensions());
  if (split.block.accepted()) p.extensions = read_extensions(split.block);
  p.payload = copy_bytes(view.frame + split.payload_offset, split.payload_length);
  p.pad = copy_bytes(view.frame + view.payload_offset + view.payload_length, view.pad);
  p.icrc = stored_icrc(view);
  const uint32_t end = view.icrc_offset + kIcrcBytes;
  p.trailing = copy_bytes(view.frame + end, length - end);
  return p;
}

ByteVector encode_packet(const Packet& packet) {
  FrameView view;
  ByteVector out = encode_covered(packet, view);
  uint8_t icrc[kIcrcBytes];
  store_icrc(icrc, packet.icrc);
  append_bytes(out, icrc);
  append_bytes(out, packet.trailing);
  return out;
}

uint16_t compute_udp_checksum(const FrameView& view) {
  const uint32_t length = view.icrc_offset + kIcrcBytes - view.l4_offset;
  // Prepends the pseudo header (RFC 768, RFC 8200 8.1): addresses, protocol, UDP length.
  ByteVector summed = copy_bytes(view.frame + view.l3_offset + (view.ipv6 ? 8 : 12), view.ipv6 ? 32 : 8);
  append(summed, Be16{kProtocolUdp});
  append(summed, Be16{static_cast<uint16_t>(length)});
  const size_t udp = summed.size();
  append_bytes(summed, std::span(view.frame + view.l4_offset, length));
  summed[udp + 6] = summed[udp + 7] = 0;
  const uint16_t sum = checksum_value(summed);
  return sum == 0 ? uint16_t{0xffff} : sum;
}

}  // namespace roci
