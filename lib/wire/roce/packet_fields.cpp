#include "wire/roce/packet_fields.hpp"

#include <rte_byteorder.h>

#include <cstdio>
#include <map>
#include <set>

namespace roci {
namespace {

using Form = PacketField::Form;

// Builds the list. next() advances to the bytes of the following field; fields that share bytes are added without
// next().
class FieldList {
 public:
  void header(std::string name) { prefix_ = std::move(name) + "."; }
  FieldList& next(uint32_t length) {
    offset_ += length_;
    length_ = length;
    return *this;
  }
  FieldList& number(std::string_view name, uint64_t value) {
    return add({.name = std::string(name), .number = value});
  }
  FieldList& hex(std::string_view name, uint64_t value, uint8_t digits) {
    return add({.name = std::string(name), .form = Form::kHex, .digits = digits, .number = value});
  }
  FieldList& flag(std::string_view name, bool value) {
    return add({.name = std::string(name), .form = Form::kFlag, .number = value ? 1U : 0U});
  }
  FieldList& text(std::string_view name, std::string value) {
    return add({.name = std::string(name), .form = Form::kText, .text = std::move(value)});
  }
  // Adds no field for an empty value.
  void bytes(std::string_view name, std::span<const uint8_t> value) {
    if (value.empty()) return;
    next(static_cast<uint32_t>(value.size()))
        .add({.name = std::string(name), .form = Form::kBytes, .text = hex_text(value)});
  }
  std::vector<PacketField> take() { return std::move(fields_); }

 private:
  FieldList& add(PacketField field) {
    field.name = prefix_ + field.name;
    field.offset = offset_;
    field.length = length_;
    fields_.push_back(std::move(field));
    return *this;
  }

  std::vector<PacketField> fields_;
  std::string prefix_;
  uint32_t offset_ = 0, length_ = 0;
};

void add_ip(FieldList& list, const Packet& p, uint32_t udp_length) {
  list.header("ip");
  const uint8_t traffic_class = p.traffic_class();
  if (p.ipv6()) {
    const Ipv6Values& ip = p.v6();
    list.next(4).number("version", 6).number("dscp", traffic_class >> 2).number("ecn", traffic_class & 3);
    list.hex("flow_label", ip.flow_label, 5);
    list.next(2).number("payload_length", udp_length);
    list.next(1).number("next_header", kProtocolUdp);
    list.next(1).number("hop_limit", ip.hop_limit);
    list.next(16).text("source", p.source.to_string());
    list.next(16).text("destination", p.destination.to_string());
    return;
  }
  const Ipv4Values& ip = p.v4();
  const auto header_length = static_cast<uint32_t>(sizeof(Ipv4Header) + ip.options.size());
  list.next(1).number("version", 4).number("header_length", header_length);
  list.next(1).number("dscp", traffic_class >> 2).number("ecn", traffic_class & 3);
  list.next(2).number("total_length", header_length + udp_length);
  list.next(2).number("id", ip.id);
  list.next(2).hex("flags_fragment", ip.flags_fragment, 4);
  list.next(1).number("ttl", ip.ttl);
  list.next(1).number("protocol", kProtocolUdp);
  list.next(2).hex("checksum", ip.checksum, 4);
  list.next(4).text("source", p.source.to_string());
  list.next(4).text("destination", p.destination.to_string());
  list.bytes("options", ip.options);
}

void add_bth(FieldList& list, const Packet& p) {
  const BthValues& bth = p.bth;
  list.header("bth");
  list.next(1).hex("opcode", static_cast<uint8_t>(bth.opcode), 2);
  list.next(1)
      .flag("solicited", bth.solicited)
      .flag("mig_req", bth.mig_req)
      .number("pad_count", p.pad.size());
  list.number("version", bth.version);
  list.next(2).hex("pkey", bth.pkey.value(), 4);
  list.next(1).flag("fecn", bth.fecn).flag("becn", bth.becn).hex("reserved6", bth.reserved6, 2);
  list.next(3).hex("destination_qp", bth.destination_qp.value(), 6);
  list.next(1).flag("ack_request", bth.ack_request).hex("reserved7", bth.reserved7, 2);
  list.next(3).number("psn", bth.psn.value());
}

// Adds the fields of an extension table row, decoded from the encoded value.
void add_extension_fields(FieldList& list, std::span<const uint8_t> value,
                          std::span<const ExtensionField> fields) {
  uint32_t end = 0;
  const auto reserved_up_to = [&](uint32_t offset) {
    if (offset > end) list.bytes("reserved", value.subspan(end, offset - end));
  };
  for (const ExtensionField& field : fields) {
    uint64_t word = 0;
    for (const uint8_t byte : value.subspan(field.offset, field.length)) word = word << 8 | byte;
    const uint64_t mask = field.bits == 64 ? ~uint64_t{0} : (uint64_t{1} << field.bits) - 1;
    reserved_up_to(field.offset);
    if (field.offset >= end) list.next(field.length);
    end = uint32_t{field.offset} + field.length;
    const uint64_t number = word >> field.shift & mask;
    if (field.bits == 1) {
      list.flag(field.name, number != 0);
    } else if (field.hex) {
      list.hex(field.name, number, static_cast<uint8_t>((field.bits + 3) / 4));
    } else {
      list.number(field.name, number);
    }
  }
  reserved_up_to(static_cast<uint32_t>(value.size()));
}

void add_extensions(FieldList& list, const ExtensionBlock& block) {
  ByteVector bytes(block.bytes());
  if (write_extensions(block, bytes) == 0) return;
  const std::span<const uint8_t> all(bytes);
  list.header("ccx");
  add_extension_fields(list, all.first(kExtensionHeaderBytes), extension_header_fields());
  size_t at = kExtensionHeaderBytes;
  for (const ExtensionInfo& info : extension_table()) {
    if ((block.types() & bit_of(info.type)) == 0) continue;
    const size_t fixed = 4U * info.words, hop = 4U * info.words_per_hop;
    const unsigned hops = hop == 0 ? 0 : bytes[at];
    list.header(std::string(info.field));
    add_extension_fields(list, all.subspan(at, fixed), info.fields);
    at += fixed;
    for (unsigned i = 0; i < hops; ++i, at += hop) {
      list.header(std::string(info.field) + "_hop" + std::to_string(i));
      add_extension_fields(list, all.subspan(at, hop), info.hop_fields);
    }
  }
}

void add_extended(FieldList& list, const Packet& p) {
  if (p.deth) {
    list.header("deth");
    list.next(4).hex("qkey", p.deth->qkey.value(), 8);
    list.next(1).hex("reserved", p.deth->reserved, 2);
    list.next(3).hex("source_qp", p.deth->source_qp.value(), 6);
  }
  if (p.xrc_eth) {
    list.header("xrceth");
    list.next(1).hex("reserved", p.xrc_eth->reserved, 2);
    list.next(3).hex("srq", p.xrc_eth->srq.value(), 6);
  }
  if (p.feth) {
    list.header("feth");
    list.next(4).hex("reserved", p.feth->reserved, 7);
    list.number("level", p.feth->level).number("type", p.feth->type);
  }
  if (p.reth) {
    list.header("reth");
    list.next(8).hex("va", p.reth->va, 16);
    list.next(4).hex("rkey", p.reth->rkey.value(), 8);
    list.next(4).number("length", p.reth->length);
  }
  if (p.atomic_eth) {
    list.header("atomic_eth");
    list.next(8).hex("va", p.atomic_eth->va, 16);
    list.next(4).hex("rkey", p.atomic_eth->rkey.value(), 8);
    list.next(8).hex("swap_or_add", p.atomic_eth->swap_or_add, 16);
    list.next(8).hex("compare", p.atomic_eth->compare, 16);
  }
  if (p.aeth) {
    list.header("aeth");
    list.next(1).hex("syndrome", p.aeth->syndrome, 2);
    list.next(3).number("msn", p.aeth->msn.value());
  }
  if (p.atomic_ack) {
    list.header("atomic_ack");
    list.next(8).hex("original", *p.atomic_ack, 16);
  }
  if (p.imm) {
    list.header("imm");
    list.next(4).hex("data", *p.imm, 8);
  }
  if (p.ieth) {
    list.header("ieth");
    list.next(4).hex("rkey", p.ieth->value(), 8);
  }
  if (p.cnp_reserved) {
    list.header("cnp");
    list.bytes("reserved", *p.cnp_reserved);
  }
  if (p.probe) {
    list.header("probe");
    list.next(4).hex("id", p.probe->id, 8);
    list.next(2).hex("flags", p.probe->flags, 4);
    list.next(2).hex("reserved", p.probe->reserved, 4);
    list.next(8).number("sent", p.probe->sent);
    list.next(8).number("lsn", p.probe->lsn.value());
  }
  if (p.probe_times) {
    list.header("probe_times");
    list.next(8).number("received", p.probe_times->received);
    list.next(8).number("answered", p.probe_times->answered);
    list.bytes("raw", p.probe_times->raw);
  }
  if (p.int_report) {
    const IntReportValues& v = *p.int_report;
    list.header("int_report");
    list.next(2).hex("flags", v.flags, 4);
    list.next(2).hex("reserved", v.reserved, 4);
    list.next(8).number("lsn", v.lsn.value());
    list.next(4).hex("switch", v.hop.switch_id, 5).number("port", v.hop.port);
    list.next(4).number("time", v.hop.time);
    list.next(4).number("tx_units", v.hop.tx_units);
    list.next(2).hex("rate", v.hop.rate_mbps.code(), 4);
    list.next(2).hex("queue", v.hop.queue_bytes.code(), 4);
    list.bytes("sampled_bth", v.sampled);
  }
  if (p.extensions) add_extensions(list, *p.extensions);
}

}  // namespace

std::string PacketField::value() const {
  if (!has_number()) return text;
  char out[32];
  std::snprintf(out, sizeof out, form == Form::kHex ? "0x%0*llx" : "%.*llu",
                form == Form::kHex ? static_cast<int>(digits) : 1, static_cast<unsigned long long>(number));
  return out;
}

std::vector<PacketField> packet_fields(const Packet& p) {
  FieldList list;
  list.header("eth");
  list.next(6).text("destination", p.destination_mac.to_string());
  list.next(6).text("source", p.source_mac.to_string());
  for (size_t i = 0; i < p.vlan_tags.size(); ++i) {
    const VlanTag& tag = p.vlan_tags[i];
    list.header("vlan" + std::to_string(i));
    list.next(2).hex("tpid", tag.tpid, 4);
    list.next(2)
        .number("pcp", tag.tci >> 13)
        .flag("dei", (tag.tci & 0x1000) != 0)
        .number("id", tag.tci & 0xfff);
  }
  if (p.cn_flow) {
    list.header("cn_tag");
    list.next(2).hex("type", kEtherTypeCnTag, 4);
    list.next(2).number("flow", *p.cn_flow);
  }
  list.header("eth");
  list.next(2).hex("type", p.ipv6() ? kEtherTypeIpv6 : kEtherTypeIpv4, 4);

  uint32_t from_bth = static_cast<uint32_t>(sizeof(Bth) + p.payload.size() + p.pad.size()) + kIcrcBytes;
  FieldList extended;
  add_extended(extended, p);
  const std::vector<PacketField> measured = extended.take();
  if (!measured.empty()) from_bth += measured.back().offset + measured.back().length;
  const auto udp_length = static_cast<uint32_t>(sizeof(UdpHeader)) + from_bth;
  add_ip(list, p, udp_length);
  list.header("udp");
  list.next(2).number("source_port", p.udp_source_port);
  list.next(2).number("destination_port", p.udp_destination_port);
  list.next(2).number("length", udp_length);
  list.next(2).hex("checksum", p.udp_checksum, 4);
  add_bth(list, p);
  add_extended(list, p);
  list.header("data");
  list.bytes("payload", p.payload);
  list.bytes("pad", p.pad);
  // In the byte order of the packet, as other tools print it.
  list.next(4).hex("icrc", rte_bswap32(p.icrc), 8);
  list.bytes("trailing", p.trailing);
  return list.take();
}

std::vector<std::string> packet_differences(const Packet& first, const Packet& second) {
  const std::vector<PacketField> a = packet_fields(first);
  const std::vector<PacketField> b = packet_fields(second);
  std::map<std::string, std::string> of_b;
  for (const PacketField& field : b) of_b[field.name] = field.value();
  std::set<std::string> in_a;
  std::vector<std::string> out;
  for (const PacketField& field : a) {
    in_a.insert(field.name);
    const auto other = of_b.find(field.name);
    const std::string other_value = other == of_b.end() ? "absent" : other->second;
    if (other_value != field.value())
      out.push_back(field.name + ": " + field.value() + " and " + other_value);
  }
  for (const PacketField& field : b) {
    if (!in_a.contains(field.name)) out.push_back(field.name + ": absent and " + field.value());
  }
  return out;
}

std::string field_names_at(const Packet& packet, uint32_t offset) {
  std::string names;
  for (const PacketField& field : packet_fields(packet)) {
    if (offset < field.offset || offset - field.offset >= field.length) continue;
    names += (names.empty() ? "" : ", ") + field.name;
  }
  return names.empty() ? "beyond the frame" : names;
}

std::string hex_text(std::span<const uint8_t> bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  out.reserve(2 * bytes.size());
  for (const uint8_t byte : bytes) {
    out += kDigits[byte >> 4];
    out += kDigits[byte & 0xf];
  }
  return out;
}

}  // namespace roci
