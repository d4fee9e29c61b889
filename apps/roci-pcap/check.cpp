#include "roci-pcap/check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "roci-pcap/explain.hpp"
#include "wire/icrc/icrc.hpp"
#include "wire/roce/packet_fields.hpp"

namespace roci::pcap_tool {
namespace {

constexpr size_t kShownDifferences = 20;  // per file; the others are only counted

std::string wire_order(uint32_t icrc) {
  uint8_t bytes[kIcrcBytes];
  store_icrc(bytes, icrc);
  return "0x" + hex_text(bytes);
}

// Checks a completely captured frame that was parsed as RoCEv2.
void check_packet(const FrameView& view, const CapturedFrame& frame, CheckReport& report) {
  const auto differs = [&](const std::string& what) {
    report.differences.push_back(fmt::format("packet {}: {}", frame.number, what));
  };
  const uint32_t stored = stored_icrc(view);
  const uint32_t computed = compute_icrc(view);
  if (stored == computed) {
    ++report.counts.icrc_good;
  } else {
    ++report.counts.icrc_bad;
    report.bad_icrc_packets.push_back(frame.number);
    report.bad_icrcs.push_back(fmt::format("packet {}: data.icrc: {} is stored, {} is computed ({})",
                                           frame.number, wire_order(stored), wire_order(computed),
                                           view.opcode->name));
  }
  if (const uint16_t sum = view.udp().checksum.get(); sum != 0 && sum != compute_udp_checksum(view)) {
    differs(fmt::format("udp.checksum: 0x{:04x} is stored, 0x{:04x} is computed", sum,
                        compute_udp_checksum(view)));
  }
  // The path MTU is unknown: the packet's own payload length is used instead.
  const uint32_t length = split_payload(view, view.frame_length, known_extensions()).payload_length;
  const PayloadCheck payload = check_payload(*view.opcode, length, view.pad, length);
  if (payload == PayloadCheck::kBadPad) {
    differs(fmt::format("bth.pad_count: {} for {} bytes of payload, expected is {}", view.pad, length,
                        pad_for(length)));
  } else if (payload != PayloadCheck::kRight) {
    differs(fmt::format("data.payload: {} ({}, {} bytes)", payload_check_name(payload), view.opcode->name,
                        length));
  }
  const auto packet = decode_packet(frame.bytes);
  if (!packet) return differs("frame: " + packet.error().message);
  const ByteVector again = encode_packet(*packet);
  const auto at = std::mismatch(again.begin(), again.end(), frame.bytes.begin(), frame.bytes.end());
  if (at.first == again.end() && at.second == frame.bytes.end()) return;
  const auto offset = static_cast<uint32_t>(at.first - again.begin());
  differs(fmt::format("{}: re-encoded, byte {} differs ({} bytes, {} in the capture)",
                      field_names_at(*packet, offset), offset, again.size(), frame.bytes.size()));
}

void check_frame(const CapturedFrame& frame, CheckReport& report) {
  ++report.frames;
  const auto captured = static_cast<uint32_t>(frame.bytes.size());
  const FrameView view = parse_frame(frame.bytes.data(), captured, frame.length, OpcodeRange::kWithPrivate);
  const bool roce = view.kind == FrameKind::kRoce || is_meant_as_roce(view, captured);
  if (!roce && !(frame.is_cut() && view.kind == FrameKind::kTruncated)) {
    ++report.counts.other;
    return;
  }
  if (roce) ++report.counts.roce;
  if (view.opcode != nullptr) ++report.counts.opcodes[std::string(view.opcode->name)];
  if (frame.is_cut()) {
    ++report.cut;
  } else if (view.kind == FrameKind::kRoce) {
    check_packet(view, frame, report);
  } else {
    report.differences.push_back(fmt::format("packet {}: {}", frame.number, why_malformed(view, captured)));
  }
}

// Reads the index for a capture: options.index, or INDEX.md in the capture's folder. Nothing if neither is there.
Result<std::optional<CaptureIndex>> index_for(const std::string& file, const CheckOptions& options) {
  if (options.no_index) return std::optional<CaptureIndex>{};
  std::filesystem::path path = options.index;
  if (path.empty()) {
    path = std::filesystem::path(file).replace_filename("INDEX.md");
    std::error_code ignored;
    if (!std::filesystem::exists(path, ignored)) return std::optional<CaptureIndex>{};
  }
  auto index = CaptureIndex::read(path);
  if (!index) return fail(index.error());
  return std::optional<CaptureIndex>(std::move(*index));
}

std::string opcode_line(const Counts& counts) {
  std::string out;
  for (const auto& [name, count] : counts.opcodes)
    out += fmt::format("{}{} {}", out.empty() ? "" : ", ", name, count);
  return out;
}

void print_differences(const std::vector<std::string>& differences) {
  for (size_t i = 0; i < differences.size() && i < kShownDifferences; ++i)
    fmt::print("    {}\n", differences[i]);
  if (differences.size() > kShownDifferences) {
    fmt::print("    and {} more\n", differences.size() - kShownDifferences);
  }
}

// "packet 2", "packets 2, 5, 9, …"
std::string packet_list(const std::vector<uint64_t>& numbers) {
  std::string out = numbers.size() == 1 ? "packet" : "packets";
  for (size_t i = 0; i < numbers.size() && i < 5; ++i)
    out += fmt::format("{} {}", i == 0 ? "" : ",", numbers[i]);
  return numbers.size() > 5 ? out + ", …" : out;
}

void print_opcode_table(const Counts& total) {
  if (total.opcodes.empty()) return;
  fmt::print("\nopcode              packets\n");
  for (const OpcodeInfo& info : opcode_table()) {  // in table order
    const auto at = total.opcodes.find(std::string(info.name));
    if (at != total.opcodes.end()) fmt::print("{:<18} {:>8}\n", info.name, at->second);
  }
}

void add(Counts& total, const Counts& more) {
  total.roce += more.roce;
  total.icrc_good += more.icrc_good;
  total.icrc_bad += more.icrc_bad;
  total.other += more.other;
  for (const auto& [name, count] : more.opcodes) total.opcodes[name] += count;
}

}  // namespace

Result<CheckReport> check_capture(const std::string& path) {
  auto capture = Capture::open(path);
  if (!capture) return fail(capture.error());
  CheckReport report;
  while (true) {
    const auto frame = capture->next();
    if (!frame) return fail(frame.error());
    if (!*frame) return report;
    check_frame(**frame, report);
  }
}

int run_check(const CheckOptions& options) {
  size_t width = 0;
  for (const std::string& file : options.files) width = std::max(width, file.size());
  Counts total;
  uint64_t total_cut = 0;
  size_t different = 0, unreadable = 0;
  for (const std::string& file : options.files) {
    auto report = check_capture(file);
    const auto index = index_for(file, options);
    if (!report || !index) {
      std::fflush(stdout);
      fmt::print(stderr, "roci-pcap: {}\n", (report ? index.error() : report.error()).message);
      ++unreadable;
      continue;
    }
    const Counts* declared =
        *index ? (*index)->find(std::filesystem::path(file).filename().string()) : nullptr;
    std::vector<std::string> differences = report->differences;
    const bool bad_declared = declared != nullptr && declared->icrc_bad == report->counts.icrc_bad;
    if (!bad_declared)
      differences.insert(differences.begin(), report->bad_icrcs.begin(), report->bad_icrcs.end());
    if (declared != nullptr) {
      for (std::string& text : count_differences(*declared, report->counts))
        differences.push_back(std::move(text));
    }

    const Counts& c = report->counts;
    std::string verdict = differences.empty() ? "ok" : fmt::format("{} DIFFERENT", differences.size());
    if (c.icrc_bad > 0 && bad_declared) {
      verdict += fmt::format("; bad ICRC declared in the index: {}", packet_list(report->bad_icrc_packets));
    }
    if (report->cut > 0) verdict += fmt::format("; {} truncated by the capture, not checked", report->cut);
    fmt::print("{:<{}}  {:>7} RoCEv2  ICRC {:>7} good {:>4} bad  {:>4} other  {}\n", file, width, c.roce,
               c.icrc_good, c.icrc_bad, c.other, verdict);
    print_differences(differences);
    if (options.verbose && !c.opcodes.empty()) fmt::print("    {}\n", opcode_line(c));
    if (!differences.empty()) ++different;
    total_cut += report->cut;
    add(total, c);
  }
  print_opcode_table(total);
  fmt::print("\n{} files, {} RoCEv2 packets: ICRC {} good, {} bad{}; {} other frames; {}\n",
             options.files.size(), total.roce, total.icrc_good, total.icrc_bad,
             total_cut > 0 ? fmt::format(", {} truncated and not checked", total_cut) : "", total.other,
             different == 0 && unreadable == 0
                 ? std::string("no difference")
                 : fmt::format("{} files with differences, {} not readable", different, unreadable));
  std::fflush(stdout);
  return unreadable > 0 ? 2 : different > 0 ? 1 : 0;
}

}  // namespace roci::pcap_tool
