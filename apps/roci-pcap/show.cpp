#include "roci-pcap/show.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "roci-pcap/capture.hpp"
#include "roci-pcap/explain.hpp"
#include "wire/icrc/icrc.hpp"
#include "wire/roce/packet_fields.hpp"

namespace roci::pcap_tool {
namespace {

using Json = nlohmann::ordered_json;

// The decoded contents of one frame. In a RoCEv2 packet truncated by the capture after its headers, missing bytes are 0
// and the ICRC is not computed.
struct Decoded {
  FrameView view;
  std::optional<Packet> packet;
  std::optional<uint32_t> computed_icrc;
  std::string description;  // of a frame without `packet`
};

Decoded decode(const CapturedFrame& frame) {
  Decoded out;
  const auto captured = static_cast<uint32_t>(frame.bytes.size());
  out.view = parse_frame(frame.bytes.data(), captured, frame.length, OpcodeRange::kWithPrivate);
  if (out.view.kind != FrameKind::kRoce) {
    const bool broken = is_meant_as_roce(out.view, captured);
    out.description = broken ? "RoCEv2, malformed: " + why_malformed(out.view, captured)
                             : describe_other(out.view, captured);
    return out;
  }
  ByteVector bytes(frame.bytes.begin(), frame.bytes.end());
  bytes.resize(frame.length);
  auto packet = decode_packet(bytes);
  if (!packet) {
    out.description = packet.error().message;
    return out;
  }
  out.packet = std::move(*packet);
  if (!frame.is_cut()) out.computed_icrc = compute_icrc(out.view);
  return out;
}

std::string_view opcode_name(const Decoded& d) { return d.view.opcode->name; }

std::string flags_text(const BthValues& bth) {
  std::string flags = "-----";
  if (bth.solicited) flags[0] = 'S';
  if (bth.mig_req) flags[1] = 'M';
  if (bth.ack_request) flags[2] = 'A';
  if (bth.fecn) flags[3] = 'F';
  if (bth.becn) flags[4] = 'B';
  return flags;
}

bool is_extension_header(const std::string& header) {
  if (header == "probe" || header == "probe_times" || header == "int_report") return true;
  const auto table = extension_table();
  return std::any_of(table.begin(), table.end(),
                     [&](const ExtensionInfo& info) { return header.starts_with(info.field); });
}

// Text form of an extension field: scaled counts and signed rates are converted to their values.
std::string extension_value(const Packet& p, const std::string& header, const std::string& name,
                            const PacketField& field) {
  const bool hop = header == "int_report" || header.starts_with("int_echo_hop");
  const auto scaled = [&] { return ScaledCount::from_code(static_cast<uint16_t>(field.number)).value(); };
  if (hop && name == "rate") return fmt::format("{} Mb/s", scaled());
  if (hop && name == "queue") return fmt::format("{} bytes", scaled());
  if (header == "rate" && name == "rate") return fmt::format("{} x 100 kb/s", p.extensions->rate->rate);
  return field.value();
}

std::string extended_text(const Packet& p) {
  std::string out;
  const auto add = [&](const std::string& text) { out += "  " + text; };
  if (p.deth)
    add(fmt::format("DETH qkey 0x{:08x} from qp 0x{:06x}", p.deth->qkey.value(), p.deth->source_qp.value()));
  if (p.xrc_eth) add(fmt::format("XRCETH srq 0x{:06x}", p.xrc_eth->srq.value()));
  if (p.feth) add(fmt::format("FETH type {} level {}", p.feth->type, p.feth->level));
  if (p.reth) {
    add(fmt::format("RETH va 0x{:x} rkey 0x{:08x} length {}", p.reth->va, p.reth->rkey.value(),
                    p.reth->length));
  }
  if (p.atomic_eth) {
    const AtomicEthValues& a = *p.atomic_eth;
    add(fmt::format("AtomicETH va 0x{:x} rkey 0x{:08x} {} 0x{:x} compare 0x{:x}", a.va, a.rkey.value(),
                    opcode_info(p.bth.opcode).operation == Operation::kFetchAdd ? "add" : "swap",
                    a.swap_or_add, a.compare));
  }
  if (p.aeth) add(fmt::format("AETH {}, msn {}", describe_syndrome(p.aeth->syndrome), p.aeth->msn.value()));
  if (p.atomic_ack) add(fmt::format("AtomicAckETH 0x{:x}", *p.atomic_ack));
  if (p.imm) add(fmt::format("ImmDt 0x{:08x}", *p.imm));
  if (p.ieth) add(fmt::format("IETH rkey 0x{:08x}", p.ieth->value()));
  // Private opcodes and extension blocks as in the table of fields, one group per header.
  std::string last;
  for (const PacketField& field : packet_fields(p)) {
    const size_t dot = field.name.find('.');
    const std::string header = field.name.substr(0, dot), name = field.name.substr(dot + 1);
    if (!is_extension_header(header) || (name == "reserved" && field.number == 0)) continue;
    if (header != last) add(header);
    last = header;
    out += " " + name + " " + extension_value(p, header, name, field);
  }
  for (const VlanTag& tag : p.vlan_tags)
    add(fmt::format("VLAN {} priority {}", tag.tci & 0xfff, tag.tci >> 13));
  if (p.cn_flow) add(fmt::format("CN-TAG flow {}", *p.cn_flow));
  return out;
}

class TextPrinter {
 public:
  void heading() {
    fmt::print("{:>6} {:>12}  {:<{}}  {:<18}  {:<8}  {:>8}  {:>7}  {:<4}  {:<5}  {:<4}  {}\n", "packet",
               "seconds", "source > destination", width_, "opcode", "to qp", "psn", "payload", "ecn", "flags",
               "icrc", "headers");
  }
  void print(const CapturedFrame& frame, const Decoded& d) {
    const double seconds = std::chrono::duration<double>(frame.time).count();
    fmt::print("{:>6} {:>12.6f}  ", frame.number, seconds);
    const std::string cut =
        frame.is_cut() ? fmt::format("  cut at {} of {} bytes", frame.bytes.size(), frame.length) : "";
    if (!d.packet) {
      fmt::print("{}{}\n", d.description, cut);
      return;
    }
    const Packet& p = *d.packet;
    const std::string route = fmt::format("{} > {}", p.source.to_string(), p.destination.to_string());
    width_ = std::max(width_, route.size());
    constexpr std::string_view kEcn[] = {"-", "ECT1", "ECT0", "CE"};
    const std::string_view icrc = !d.computed_icrc ? "?" : *d.computed_icrc == p.icrc ? "ok" : "BAD";
    std::string line =
        fmt::format("{:<{}}  {:<18}  0x{:06x}  {:>8}  {:>7}  {:<4}  {:<5}  {:<4}{}{}", route, width_,
                    opcode_name(d), p.bth.destination_qp.value(), p.bth.psn.value(), p.payload.size(),
                    kEcn[static_cast<int>(p.ecn())], flags_text(p.bth), icrc, extended_text(p), cut);
    line.erase(line.find_last_not_of(' ') + 1);
    fmt::print("{}\n", line);
  }

 private:
  size_t width_ = 24;  // grows to the longest pair of addresses
};

Json json_of(const CapturedFrame& frame, const Decoded& d, bool payload) {
  Json out;
  out["number"] = frame.number;
  out["time_ns"] = frame.time.count();
  out["length"] = frame.length;
  out["captured"] = frame.bytes.size();
  out["kind"] = frame_kind_name(d.view.kind);
  if (!d.packet) {
    out["description"] = d.description;
    return out;
  }
  const Packet& p = *d.packet;
  out["opcode"] = opcode_name(d);
  for (const PacketField& field : packet_fields(p)) {
    const size_t dot = field.name.find('.');
    const std::string header = field.name.substr(0, dot), name = field.name.substr(dot + 1);
    if (header == "data") continue;  // printed below
    Json& value = out[header][name];
    if (field.form == PacketField::Form::kNumber) {
      value = field.number;
    } else if (field.form == PacketField::Form::kFlag) {
      value = field.number != 0;
    } else {
      value = field.value();
    }
  }
  if (p.aeth) out["aeth"]["meaning"] = describe_syndrome(p.aeth->syndrome);
  out["payload_length"] = p.payload.size();
  if (payload && !frame.is_cut()) out["payload"] = hex_text(p.payload);
  if (!p.pad.empty() && !frame.is_cut()) out["pad"] = hex_text(p.pad);
  if (!p.trailing.empty() && !frame.is_cut()) out["trailing"] = hex_text(p.trailing);
  if (d.computed_icrc) {
    const auto text = [](uint32_t icrc) {  // in wire byte order
      uint8_t bytes[kIcrcBytes];
      store_icrc(bytes, icrc);
      return "0x" + hex_text(bytes);
    };
    out["icrc"]["stored"] = text(p.icrc);
    out["icrc"]["computed"] = text(*d.computed_icrc);
    out["icrc"]["good"] = p.icrc == *d.computed_icrc;
  }
  return out;
}

}  // namespace

int run_show(const ShowOptions& options) {
  const auto complain = [](const Error& error) {
    std::fflush(stdout);
    fmt::print(stderr, "roci-pcap: {}\n", error.message);
    return 2;
  };
  auto capture = Capture::open(options.file);
  if (!capture) return complain(capture.error());
  TextPrinter text;
  if (!options.json) text.heading();
  while (true) {
    const auto frame = capture->next();
    if (!frame) return complain(frame.error());
    if (!*frame) return 0;
    const Decoded decoded = decode(**frame);
    if (options.json) {
      fmt::print("{}\n", json_of(**frame, decoded, options.payload).dump());
    } else {
      text.print(**frame, decoded);
    }
  }
}

}  // namespace roci::pcap_tool
