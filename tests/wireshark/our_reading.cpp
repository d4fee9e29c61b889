#include "wireshark/our_reading.hpp"

#include <rte_byteorder.h>

#include <algorithm>
#include <cstring>

#include "wire/cnm/l3_congestion_notification.hpp"
#include "wire/int/telemetry_edit.hpp"
#include "wire/mad/capability_mad.hpp"
#include "wire/net/pause.hpp"
#include "wire/roce/packet_fields.hpp"
#include "wire/wire_test_support.hpp"

namespace roci::test {
namespace {

constexpr uint32_t kBlockUnit = 100;  // kb/s; unit of rates in extension blocks and TLVs

// Collects values. The caller converts signed ones.
class Fields {
 public:
  explicit Fields(Reading& to) : to_(to) {}
  void number(const std::string& name, uint64_t value) { text(name, std::to_string(value)); }
  void signed_number(const std::string& name, int64_t value) { text(name, std::to_string(value)); }
  void text(const std::string& name, const std::string& value) { to_[name].push_back(value); }
  void bytes(const std::string& name, std::span<const uint8_t> value) { text(name, hex_text(value)); }
  void mac(const std::string& name, const MacAddress& value) { text(name, value.to_string()); }

 private:
  Reading& to_;
};

uint64_t be(std::span<const uint8_t> bytes, size_t offset, size_t length) {
  uint64_t value = 0;
  for (const uint8_t byte : bytes.subspan(offset, length)) value = value << 8 | byte;
  return value;
}

void add_hop(Fields& out, const std::string& prefix, const IntHopValues& hop) {
  out.number(prefix + "switch", hop.switch_id);
  out.number(prefix + "port", hop.port);
  out.number(prefix + "time", hop.time);
  out.number(prefix + "tx_bytes", hop.tx_units * IntHopValues::kTxUnit);
  out.number(prefix + "rate", hop.rate_mbps.value());
  out.number(prefix + "queue", hop.queue_bytes.value());
}

void add_sampled_bth(Fields& out, const std::string& prefix, std::span<const uint8_t> bth) {
  out.number(prefix + "opcode", bth[0]);
  out.number(prefix + "destination_qp", be(bth, 5, 3));
  out.number(prefix + "psn", be(bth, 9, 3));
}

// --------------------------------------------------------------------------------------------------- RoCEv2

// Fields that tshark decodes without the script.
void add_infiniband(Fields& out, const Packet& p) {
  const BthValues& bth = p.bth;
  out.number("infiniband.bth.opcode", static_cast<uint8_t>(bth.opcode));
  out.number("infiniband.bth.se", bth.solicited);
  out.number("infiniband.bth.m", bth.mig_req);
  out.number("infiniband.bth.padcnt", p.pad.size());
  out.number("infiniband.bth.tver", bth.version);
  out.number("infiniband.bth.p_key", bth.pkey.value());
  out.number("infiniband.bth.destqp", bth.destination_qp.value());
  out.number("infiniband.bth.a", bth.ack_request);
  out.number("infiniband.bth.psn", bth.psn.value());
  const OpcodeInfo& info = opcode_info(bth.opcode);
  // For these tshark decodes only the BTH. tshark 4.0 knows the names of XRC opcodes, but not their headers.
  if (info.is_private() || info.transport == TransportClass::kXrc || bth.opcode == Opcode::kCnp ||
      bth.opcode == Opcode::kRcFlush || bth.opcode == Opcode::kRcAtomicWrite)
    return;
  if (p.deth) {
    out.number("infiniband.deth.q_key", p.deth->qkey.value());
    out.number("infiniband.deth.srcqp", p.deth->source_qp.value());
  }
  if (p.reth) {
    out.number("infiniband.reth.va", p.reth->va);
    out.number("infiniband.reth.r_key", p.reth->rkey.value());
    out.number("infiniband.reth.dmalen", p.reth->length);
  }
  if (p.atomic_eth) {
    out.number("infiniband.reth.va", p.atomic_eth->va);
    out.number("infiniband.reth.r_key", p.atomic_eth->rkey.value());
    out.number("infiniband.atomiceth.swapdt", p.atomic_eth->swap_or_add);
    out.number("infiniband.atomiceth.cmpdt", p.atomic_eth->compare);
  }
  if (p.aeth) {
    out.number("infiniband.aeth.syndrome", p.aeth->syndrome);
    out.number("infiniband.aeth.msn", p.aeth->msn.value());
  }
  if (p.atomic_ack) out.number("infiniband.atomicacketh.origremdt", *p.atomic_ack);
  const bool management = p.deth && bth.destination_qp.value() <= 1;  // tshark stops after the MAD
  if (!management) out.number("infiniband.invariant.crc", rte_bswap32(p.icrc));
}

// A field of packet_fields() in an extension block or a private opcode.
void add_own_field(Fields& out, const Packet& p, const PacketField& field) {
  const size_t dot = field.name.find('.');
  std::string header = field.name.substr(0, dot), name = field.name.substr(dot + 1);
  if (header.starts_with("int_echo_hop")) header = "int_echo.hop";
  if (header == "ccx") header = "block";
  constexpr std::string_view kOfHop[] = {"switch", "port", "time", "tx_units", "rate", "queue"};
  if (header == "int_report" && std::find(std::begin(kOfHop), std::end(kOfHop), name) != std::end(kOfHop))
    header = "int_report.hop";
  const bool hop = header == "int_echo.hop" || header == "int_report.hop";
  const std::string full = "roci." + header + ".";
  // Reserved bytes of a block are 0.
  if (name == "reserved" && field.form == PacketField::Form::kBytes) return;
  if (hop && name == "tx_units") {
    out.number(full + "tx_bytes", field.number * IntHopValues::kTxUnit);
  } else if (hop && (name == "rate" || name == "queue")) {
    out.number(full + name, ScaledCount::from_code(static_cast<uint16_t>(field.number)).value());
  } else if (header == "rate" && name == "rate") {
    out.signed_number(full + name, int64_t{p.extensions->rate->rate} * kBlockUnit);
  } else if (field.has_number()) {
    out.number(full + name, field.number);
  } else {
    out.text(full + name, field.text);
  }
}

void add_private(Fields& out, const Packet& p) {
  out.number("roci.opcode", static_cast<uint8_t>(p.bth.opcode));
  out.number("roci.icrc", rte_bswap32(p.icrc));
  if (p.aeth) {
    out.number("roci.rrack.syndrome", p.aeth->syndrome);
    out.number("roci.rrack.completed", p.aeth->msn.value());
  }
  if (p.probe) {
    out.number("roci.probe.rtt", (p.probe->flags & Probe::kRtt) != 0);
    out.number("roci.probe.int", (p.probe->flags & Probe::kInt) != 0);
  }
  if (p.int_report) {
    out.number("roci.int_report.lsn_known", (p.int_report->flags & IntReport::kLsnKnown) != 0);
    out.number("roci.int_report.to_receiver", (p.int_report->flags & IntReport::kToReceiver) != 0);
    add_sampled_bth(out, "roci.int_report.sampled.", p.int_report->sampled);
  }
}

constexpr size_t kVendorHeaders = sizeof(MadHeader) + sizeof(VendorMadHeader);
constexpr size_t kOuiAt = kVendorHeaders - sizeof kCapabilityOui;

void add_capabilities(OurReading& reading, std::span<const uint8_t> payload) {
  const ParsedMad mad = parse_capability_mad(payload);
  Fields out(reading.fields);
  switch (mad.outcome) {
    case MadOutcome::kBadSize:
      if (payload.size() >= kVendorHeaders && payload[0] == MadHeader::kBaseVersion &&
          payload[1] == kCapabilityClass &&
          std::equal(kCapabilityOui.begin(), kCapabilityOui.end(), payload.begin() + kOuiAt))
        reading.refused = "Malformed capability exchange: bad size";
      return;
    case MadOutcome::kBadBaseVersion:
    case MadOutcome::kOtherClass:
    case MadOutcome::kOtherOui:
      return;  // other protocols
    case MadOutcome::kAccepted:
    case MadOutcome::kRefused:
      break;
    default:
      reading.refused = "Malformed capability exchange: " + std::string(mad_outcome_name(mad.outcome));
      return;
  }
  out.number("roci.capability.response", mad.message.response);
  out.number("roci.capability.status", mad.status);
  out.number("roci.capability.transaction", mad.message.transaction);
  if (mad.outcome == MadOutcome::kRefused) return;
  const CapabilityOffer& offer = mad.message.offer;
  out.number("roci.capability.version", offer.version);
  out.number("roci.capability.lowest", offer.lowest);
  out.number("roci.capability.mtu_extra", offer.mtu_extra);
  out.number("roci.capability.int_hops", offer.int_hops);
  out.number("roci.capability.window", offer.window);
  out.number("roci.capability.time_unit", offer.time_unit);
  out.number("roci.capability.incarnation", offer.incarnation);
  out.number("roci.capability.peer_incarnation", mad.message.peer_incarnation);
  out.bytes("roci.capability.auth", offer.auth);
  constexpr auto kNetworkAuth = static_cast<uint32_t>(Capability::kNetworkAuth);
  if (offer.version >= kSignedCapabilityVersion && (offer.capabilities & kNetworkAuth) != 0) {
    out.bytes("roci.capability.network_auth", offer.network_auth);
    out.number("roci.capability.mac", mad.message.mac);
  }
  out.number("roci.capability.capabilities", offer.capabilities);
  for (const ExtensionInfo& info : extension_table()) {
    std::string name(info.name);
    for (char& c : name) c = c == '-' ? '_' : static_cast<char>(std::tolower(c));
    out.number("roci.capability.takes." + name, (offer.capabilities & bit_of(info.type)) != 0);
  }
  const auto bit = [&](const char* name, Capability capability) {
    out.number(std::string("roci.capability.") + name,
               (offer.capabilities & static_cast<uint32_t>(capability)) != 0);
  };
  bit("data_blocks", Capability::kDataBlocks);
  bit("probes", Capability::kProbes);
  bit("read_acks", Capability::kReadAcks);
  bit("int_responses", Capability::kIntResponses);
  bit("window_messages", Capability::kWindowMessages);
  bit("selective_repeat", Capability::kSelectiveRepeat);
  bit("network_key", Capability::kNetworkAuth);
}

// Whether the BTH of a packet that is too short announces an extension block or private opcode.
bool says_more_than_there_is(const FrameView& view) {
  if (view.udp().length.get() < sizeof(UdpHeader) + sizeof(Bth) || view.bth().version() != 0) return false;
  const OpcodeInfo* opcode = find_opcode(view.bth().opcode);
  return opcode != nullptr && (opcode->is_private() || view.bth().has_extensions());
}

// A frame without CN-TAG and INT.
void add_roce(OurReading& reading, std::span<const uint8_t> frame) {
  const auto length = static_cast<uint32_t>(frame.size());
  const FrameView view = parse_frame(frame.data(), length, length, OpcodeRange::kWithPrivate);
  if (view.kind == FrameKind::kBadLength && says_more_than_there_is(view))
    reading.refused = "Malformed packet: bad length";
  if (view.kind != FrameKind::kRoce) return;
  const auto packet = decode_packet(frame);
  if (!packet) return;
  Fields out(reading.fields);
  add_infiniband(out, *packet);
  if (packet->bth.opcode == Opcode::kUdSendOnly && view.bth().destination_qp.get() == 1 &&
      !view.bth().has_extensions())
    return add_capabilities(reading, frame.subspan(view.payload_offset, view.payload_length));
  if (view.opcode->is_private()) add_private(out, *packet);
  const ExtendedPayload split = split_payload(view, length, known_extensions());
  if (split.block.accepted()) {
    out.number("roci.payload_length", split.payload_length);
  } else if (split.block.outcome != ExtensionOutcome::kAbsent) {
    reading.refused =
        "Malformed extension block: " + std::string(extension_outcome_name(split.block.outcome));
  }
  for (const PacketField& field : packet_fields(*packet)) {
    const std::string header = field.name.substr(0, field.name.find('.'));
    const auto table = extension_table();
    const bool extension =
        header == "ccx" || std::any_of(table.begin(), table.end(), [&](const ExtensionInfo& info) {
          return header == info.field || header.starts_with(std::string(info.field) + "_hop");
        });
    if (extension || header == "probe" || header == "probe_times" || header == "int_report")
      add_own_field(out, *packet, field);
  }
}

// ------------------------------------------------------------------------------------------------------ INT

struct Metadata {
  const char* name;
  uint8_t bit, offset, length;
};
// INT v2.1, 5.7: metadata of the standard's instructions, in order.
constexpr Metadata kMetadata[] = {
    {"node_id", 15, 0, 4},        {"level1_ingress", 14, 0, 2}, {"level1_egress", 14, 2, 2},
    {"latency", 13, 0, 4},        {"queue_id", 12, 0, 1},       {"queue_occupancy", 12, 1, 3},
    {"ingress_time", 11, 0, 8},   {"egress_time", 10, 0, 8},    {"level2_ingress", 9, 0, 4},
    {"level2_egress", 9, 4, 4},   {"tx_utilisation", 8, 0, 4},  {"buffer_id", 7, 0, 1},
    {"buffer_occupancy", 7, 1, 3}};

void add_baseline(Fields& out, std::span<const uint8_t> hop, uint16_t instructions) {
  size_t at = 0;
  for (unsigned bit = 15; bit >= 1; --bit) {
    const auto mask = static_cast<uint16_t>(1U << bit);
    if ((instructions & mask) == 0) continue;
    if (bit < 7) out.number("roci.int.hop.reserved", be(hop, at, 4));
    for (const Metadata& row : kMetadata) {
      if (row.bit == bit)
        out.number(std::string("roci.int.hop.") + row.name, be(hop, at + row.offset, row.length));
    }
    at += int_baseline_bytes(mask);
  }
}

void add_int_hop(Fields& out, const IntView& view, uint32_t i) {
  const IntMdHeader& header = view.header();
  const uint16_t instructions = header.instructions.get(), domain = header.domain.get();
  const std::span<const uint8_t> hop(view.frame + view.stack_offset() + i * view.hop_bytes, view.hop_bytes);
  const uint32_t before = int_baseline_bytes(instructions);
  const uint32_t behind = (instructions & int_instruction::kChecksumComplement) != 0 ? 4 : 0;
  if (hop.size() < before + behind) return out.bytes("roci.int.hop.data", hop);
  add_baseline(out, hop, instructions);
  if (behind != 0) out.number("roci.int.hop.checksum_complement", be(hop, hop.size() - 4, 4));
  const auto own = hop.subspan(before, hop.size() - before - behind);
  const uint16_t form = header.domain_instructions.get();
  const bool known_form =
      form == int_domain_instruction::kCompactHop || form == int_domain_instruction::kFullHop;
  if (own.empty()) return;
  if (!known_form || own.size() != int_domain_bytes(form)) return out.bytes("roci.int.hop.data", own);
  if (const FullHop* full = view.full(i, domain)) {
    out.number("roci.int.hop.switch", full->switch_id.get());
    out.number("roci.int.hop.ingress_port", full->ingress_port.get());
    out.number("roci.int.hop.port", full->egress_port.get());
    out.number("roci.int.hop.time", full->time.get());
    out.number("roci.int.hop.tx_bytes", full->tx_bytes.get());
    out.number("roci.int.hop.queue", full->queue_bytes.get());
    out.number("roci.int.hop.rate", full->rate_mbps.get());
  } else if (const auto compact = view.hop(i, domain)) {
    add_hop(out, "roci.int.hop.", *compact);
  }
}

void add_int(OurReading& reading, std::span<const uint8_t> frame, const IntView& view) {
  if (view.shim().type() != IntShim::kTypeMd) return;  // not decoded
  if (!view.accepted()) {
    reading.refused = "Malformed INT: " + std::string(int_outcome_name(view.outcome));
    return;
  }
  Fields out(reading.fields);
  const IntMdHeader& h = view.header();
  out.number("roci.int.type", view.shim().type());
  out.number("roci.int.npt", view.shim().next_type());
  out.number("roci.int.words", view.shim().words);
  out.number("roci.int.next_port", view.shim().next.get());
  out.number("roci.int.version", h.version());
  out.number("roci.int.discard", h.has(IntMdHeader::kDiscard));
  out.number("roci.int.hops_exceeded", h.has(IntMdHeader::kHopsExceeded));
  out.number("roci.int.mtu_exceeded", h.has(IntMdHeader::kMtuExceeded));
  out.number("roci.int.hop_words", h.hop_words());
  out.number("roci.int.hops_left", h.hops_left());
  out.number("roci.int.instructions", h.instructions.get());
  out.number("roci.int.domain", h.domain.get());
  out.number("roci.int.domain_instructions", h.domain_instructions.get());
  out.number("roci.int.domain_flags", h.domain_flags.get());
  out.number("roci.int.wants_response", view.wants_response(h.domain.get()));
  out.number("roci.int.hops", view.hop_count);
  for (uint32_t i = 0; i < view.hop_count; ++i) add_int_hop(out, view, i);
  RoomyFrame inner({frame.begin(), frame.end()});
  strip_int(inner.front, parse_int(inner.front.head(), inner.front.length, kIntPort));
  add_roce(reading, inner.front.head());
}

// ------------------------------------------------------------------------------------------------------ CNM

void add_sample(Fields& out, std::span<const uint8_t> msdu) {
  out.bytes("roci.cnm.msdu", msdu);
  if (msdu.size() < 2) return;
  out.number("roci.cnm.sample.ethertype", be(msdu, 0, 2));
  Bytes front(2 * sizeof(MacAddress));
  front.insert(front.end(), msdu.begin(), msdu.end());
  const auto flow = read_five_tuple(front);
  if (!flow) return;
  const bool v4 = flow->source.is_v4();
  out.text(v4 ? "roci.cnm.sample.src" : "roci.cnm.sample.src6", flow->source.to_string());
  out.text(v4 ? "roci.cnm.sample.dst" : "roci.cnm.sample.dst6", flow->destination.to_string());
  out.number("roci.cnm.sample.protocol", flow->protocol);
  const size_t l4 = 2 + (v4 ? (msdu[2] & 0xfU) * 4 : 40U);
  const bool fragment = v4 && (be(msdu, 8, 2) & 0x3fff) != 0;
  if (fragment || msdu.size() < l4 + 4 || (flow->protocol != 17 && flow->protocol != 6)) return;
  out.number("roci.cnm.sample.src_port", flow->source_port);
  out.number("roci.cnm.sample.dst_port", flow->destination_port);
  const size_t bth = l4 + sizeof(UdpHeader);
  if (flow->protocol == 17 && flow->destination_port == kRoceUdpPort && msdu.size() >= bth + sizeof(Bth))
    add_sampled_bth(out, "roci.cnm.sample.", msdu.subspan(bth));
}

void add_cnm(Fields& out, const Cnm& cnm) {
  out.number("roci.cnm.version", 0);
  out.number("roci.cnm.reserved", 0);
  out.number("roci.cnm.feedback", cnm.feedback);
  out.mac("roci.cnm.bridge", cnm.point.bridge);
  out.number("roci.cnm.queue", cnm.point.queue.get());
  out.signed_number("roci.cnm.queue_offset", cnm.queue_offset * kCnmQueueUnit);
  out.signed_number("roci.cnm.queue_delta", cnm.queue_delta * kCnmQueueUnit);
  out.number("roci.cnm.priority", cnm.priority);
  out.mac("roci.cnm.destination", cnm.destination);
  out.number("roci.cnm.msdu_length", cnm.msdu.size());
  if (!cnm.msdu.empty()) add_sample(out, cnm.msdu);
}

void add_tlvs(Fields& out, std::span<const uint8_t> bytes, const L3CnmTlvs& tlvs) {
  while (!bytes.empty()) {
    const uint8_t type = bytes[0], length = bytes[1];
    out.number("roci.l3cnm.tlv.type", type);
    out.number("roci.l3cnm.tlv.length", length);
    const auto value = bytes.subspan(2, length);
    const bool known = type >= 1 && type <= 5;
    if (!known && length > 0) out.bytes("roci.l3cnm.tlv.value", value);
    if (type == 5) out.number("roci.l3cnm.auth.mac", be(value, 4, 8));
    bytes = bytes.subspan(2U + length);
  }
  if (tlvs.available_bandwidth)
    out.number("roci.l3cnm.available_bandwidth", uint64_t{*tlvs.available_bandwidth} * kBlockUnit);
  if (tlvs.rate_change) out.signed_number("roci.l3cnm.rate_change", int64_t{*tlvs.rate_change} * kBlockUnit);
  if (tlvs.port) add_hop(out, "roci.l3cnm.port.", *tlvs.port);
  if (tlvs.ecn) {
    out.number("roci.l3cnm.ecn.packets", tlvs.ecn->packets);
    out.number("roci.l3cnm.ecn.marked", tlvs.ecn->marked);
  }
  if (tlvs.auth_sequence) out.number("roci.l3cnm.auth.sequence", *tlvs.auth_sequence);
}

void add_l3_cnm(OurReading& reading, std::span<const uint8_t> frame, const L3CnmView& view) {
  if (view.outcome == L3CnmOutcome::kBadVersion) return;  // not decoded
  if (view.outcome == L3CnmOutcome::kBadPdu) {
    reading.refused = "Malformed CNM: " + std::string(cnm_outcome_name(view.pdu));
    return;
  }
  if (!view.accepted()) {
    reading.refused = "Malformed self-defined CNM: " + std::string(l3_cnm_outcome_name(view.outcome));
    return;
  }
  Fields out(reading.fields);
  const bool v4 = view.flow.source.is_v4();
  const uint32_t tlvs_at = view.pdu_offset + view.cnm.pdu_bytes();
  const bool has_tlvs = tlvs_at < view.udp.end;
  out.number("roci.l3cnm.version", 1);
  out.number("roci.l3cnm.type", 1);
  out.number("roci.l3cnm.flags", (v4 ? 0U : L3CnmHeader::kIpv6) | (has_tlvs ? L3CnmHeader::kTlvs : 0U));
  out.number("roci.l3cnm.ipv6", !v4);
  out.number("roci.l3cnm.tlvs", has_tlvs);
  out.number("roci.l3cnm.protocol", view.flow.protocol);
  out.number("roci.l3cnm.reserved", 0);
  out.text(v4 ? "roci.l3cnm.src" : "roci.l3cnm.src6", view.flow.source.to_string());
  out.text(v4 ? "roci.l3cnm.dst" : "roci.l3cnm.dst6", view.flow.destination.to_string());
  out.number("roci.l3cnm.src_port", view.flow.source_port);
  out.number("roci.l3cnm.dst_port", view.flow.destination_port);
  add_cnm(out, view.cnm);
  add_tlvs(out, frame.subspan(tlvs_at, view.udp.end - tlvs_at), view.tlvs);
}

void add_pause(Fields& out, const PauseMessage& message) {
  out.number("macc.opcode", message.kind == PauseKind::kLink ? 0x0001 : 0x0101);
  if (message.kind == PauseKind::kLink) return out.number("macc.pause_time", message.quanta[0]);
  out.number("macc.cbfc.enbv", message.classes);
  for (unsigned p = 0; p < kPriorities; ++p) {
    const std::string number = std::to_string(p);
    out.number("macc.cbfc.enbv.c" + number, message.includes(p));
    if (message.includes(p)) out.number("macc.cbfc.pause_time.c" + number, message.quanta[p]);
  }
}

// Reads the UDP ports if the frame is UDP.
void add_udp(Fields& out, std::span<const uint8_t> frame, const UdpLocation& where) {
  if (where.outcome != UdpOutcome::kFound) return;
  out.number("udp.srcport", be(frame, where.l4_offset, 2));
  out.number("udp.dstport", be(frame, where.l4_offset + 2, 2));
  out.number("udp.length", be(frame, where.l4_offset + 4, 2));
}

}  // namespace

const std::vector<std::string>& standard_fields() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> out = {"eth.dst",
                                    "eth.src",
                                    "udp.srcport",
                                    "udp.dstport",
                                    "udp.length",
                                    "infiniband.bth.opcode",
                                    "infiniband.bth.se",
                                    "infiniband.bth.m",
                                    "infiniband.bth.padcnt",
                                    "infiniband.bth.tver",
                                    "infiniband.bth.p_key",
                                    "infiniband.bth.destqp",
                                    "infiniband.bth.a",
                                    "infiniband.bth.psn",
                                    "infiniband.deth.q_key",
                                    "infiniband.deth.srcqp",
                                    "infiniband.reth.va",
                                    "infiniband.reth.r_key",
                                    "infiniband.reth.dmalen",
                                    "infiniband.atomiceth.swapdt",
                                    "infiniband.atomiceth.cmpdt",
                                    "infiniband.aeth.syndrome",
                                    "infiniband.aeth.msn",
                                    "infiniband.atomicacketh.origremdt",
                                    "infiniband.invariant.crc",
                                    "macc.opcode",
                                    "macc.pause_time",
                                    "macc.cbfc.enbv"};
    for (unsigned p = 0; p < kPriorities; ++p) {
      out.push_back("macc.cbfc.enbv.c" + std::to_string(p));
      out.push_back("macc.cbfc.pause_time.c" + std::to_string(p));
    }
    return out;
  }();
  return names;
}

OurReading our_reading(std::span<const uint8_t> frame) {
  OurReading reading;
  const auto length = static_cast<uint32_t>(frame.size());
  const auto tagged = parse_link_tags(frame);
  if (!tagged) return reading;
  Fields out(reading.fields);
  const auto& ethernet = *reinterpret_cast<const EthernetHeader*>(frame.data());
  out.mac("eth.dst", ethernet.destination);
  out.mac("eth.src", ethernet.source);
  if (tagged->tags.flow) {
    out.number("roci.cn_tag.flow", *tagged->tags.flow);
    out.number("roci.cn_tag.ethertype", tagged->ether_type);
  }
  if (tagged->ether_type == kEtherTypeCnm) {
    const ParsedCnmFrame parsed = parse_cnm_frame(frame);
    if (parsed.outcome == CnmOutcome::kAccepted) {
      add_cnm(out, parsed.cnm);
    } else {
      reading.refused = "Malformed CNM: " + std::string(cnm_outcome_name(parsed.outcome));
    }
    return reading;
  }
  if (const ParsedPause pause = parse_pause(frame, MacAddress{}); pause.outcome == PauseOutcome::kAccepted) {
    add_pause(out, pause.message);
    return reading;
  }
  add_udp(out, frame, find_udp(frame, length));
  if (const IntView view = parse_int(frame, length, kIntPort); view.outcome != IntOutcome::kNotInt) {
    add_int(reading, frame, view);
    return reading;
  }
  if (const L3CnmView view = parse_l3_cnm(frame, kNotificationPort);
      view.outcome != L3CnmOutcome::kNotL3Cnm) {
    add_l3_cnm(reading, frame, view);
    return reading;
  }
  RoomyFrame bare({frame.begin(), frame.end()});
  (void)remove_cn_tag(bare.front);
  add_roce(reading, bare.front.head());
  return reading;
}

}  // namespace roci::test
