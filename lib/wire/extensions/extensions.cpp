#include "wire/extensions/extensions.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace roci {
namespace {

using Field = ExtensionField;

constexpr Field whole(std::string_view name, uint8_t offset, uint8_t length, bool hex = false) {
  return {name, offset, length, 0, static_cast<uint8_t>(8 * length), hex};
}

constexpr Field kHeaderFields[] = {{"version", 0, 1, 4, 4, false},
                                   {"flags", 0, 1, 0, 4, true},
                                   whole("words", 1, 1),
                                   whole("types", 2, 2, true)};
constexpr Field kSourceQpFields[] = {whole("qp", 1, 3, true)};
constexpr Field kCeEchoFields[] = {whole("packets", 0, 4), whole("marked", 4, 4)};
constexpr Field kLsnFields[] = {whole("lsn", 0, 8)};
constexpr Field kTimestampFields[] = {whole("time", 0, 8)};
constexpr Field kTimestampEchoFields[] = {whole("time", 0, 8), whole("hold", 8, 4),
                                          whole("host_delay", 12, 4)};
constexpr Field kRxWindowFields[] = {whole("bytes", 0, 4), whole("psn", 5, 3)};
constexpr Field kFlowsFields[] = {{"last_hop", 0, 1, 0, 1, false}, whole("count", 1, 3)};
constexpr Field kRateFields[] = {{"delta", 0, 4, 31, 1, false}, {"rate", 0, 4, 0, 28, false}};
constexpr Field kIntEchoFields[] = {whole("hops", 0, 1),
                                    {"delayed", 1, 1, 0, 1, false},
                                    {"probe", 1, 1, 1, 1, false},
                                    {"from_switch", 1, 1, 2, 1, false},
                                    {"incomplete", 1, 1, 3, 1, false},
                                    whole("age", 2, 2)};
constexpr Field kHopFields[] = {
    {"switch", 0, 4, 12, 20, true}, {"port", 0, 4, 0, 12, false}, whole("time", 4, 4),
    whole("tx_units", 8, 4),        whole("rate", 12, 2, true),   whole("queue", 14, 2, true)};
constexpr Field kSackFields[] = {whole("psn", 1, 3), whole("kept", 4, 8, true)};
constexpr Field kAuthFields[] = {whole("sequence", 0, 4), whole("mac", 4, 8, true)};

constexpr ExtensionInfo row(ExtensionType type, std::string_view name, std::string_view field, uint8_t words,
                            std::span<const Field> fields, std::span<const Field> hop_fields = {}) {
  ExtensionInfo info{
      type,   name,       field, words, hop_fields.empty() ? uint8_t{0} : uint8_t{sizeof(IntHop) / 4},
      fields, hop_fields, {}};
  for (unsigned i = 0; i < 4U * words; ++i) info.reserved[i] = 0xff;
  for (const Field& f : fields) {
    for (unsigned bit = f.shift; bit < static_cast<unsigned>(f.shift) + f.bits; ++bit) {
      info.reserved[f.offset + f.length - 1U - bit / 8] &= static_cast<uint8_t>(~(1U << bit % 8));
    }
  }
  return info;
}

using enum ExtensionType;
constexpr std::array kTable = {
    row(kSourceQp, "SOURCE-QPN", "source_qp", 1, kSourceQpFields),
    row(kCeEcho, "CE-ECHO", "ce_echo", 2, kCeEchoFields),
    row(kLsn, "LSN", "lsn", 2, kLsnFields),
    row(kTimestamp, "TS", "ts", 2, kTimestampFields),
    row(kTimestampEcho, "TS-ECHO", "ts_echo", 4, kTimestampEchoFields),
    row(kRxWindow, "RXWIN", "rx_window", 2, kRxWindowFields),
    row(kFlows, "NFLOWS", "flows", 1, kFlowsFields),
    row(kRate, "RATE", "rate", 1, kRateFields),
    row(kIntEcho, "INT-ECHO", "int_echo", 1, kIntEchoFields, kHopFields),
    row(kSack, "SACK", "sack", 3, kSackFields),
    row(kAuth, "AUTH", "auth", 3, kAuthFields),
};

constexpr uint16_t kKnown = [] {
  uint16_t bits = 0;
  for (const ExtensionInfo& info : kTable) bits = static_cast<uint16_t>(bits | bit_of(info.type));
  return bits;
}();

constexpr uint32_t kMaxWords = [] {
  uint32_t words = 1;
  for (const ExtensionInfo& info : kTable) words += info.words + uint32_t{info.words_per_hop} * kMaxIntHops;
  return words;
}();
static_assert(kMaxWords <= 0xff, "`words` has 8 bits");

constexpr uint32_t kHopWords = sizeof(IntHop) / 4;

// Index into the table by bit.
constexpr auto kIndex = [] {
  std::array<uint8_t, 16> index{};
  for (size_t i = 0; i < kTable.size(); ++i)
    index[static_cast<unsigned>(kTable[i].type)] = static_cast<uint8_t>(i);
  return index;
}();

}  // namespace

std::span<const ExtensionInfo> extension_table() { return kTable; }
uint16_t known_extensions() { return kKnown; }
uint32_t max_extension_bytes() { return 4 * kMaxWords; }
std::span<const ExtensionField> extension_header_fields() { return kHeaderFields; }

const ExtensionInfo* find_extension(unsigned bit) {
  return bit < 16 && (kKnown >> bit & 1U) != 0 ? &kTable[kIndex[bit]] : nullptr;
}

std::string_view extension_outcome_name(ExtensionOutcome outcome) {
  constexpr std::string_view kNames[kExtensionOutcomeCount] = {
      "accepted",      "absent",         "too short",     "bad version", "reserved flags",
      "unknown type",  "empty",          "too many hops", "bad length",  "beyond the packet",
      "reserved bits", "trailing bytes", "out of reach"};
  return kNames[static_cast<unsigned>(outcome)];
}

uint32_t fixed_block_bytes(uint16_t types) {
  if (types == 0) return 0;
  uint32_t words = 1;
  for (uint16_t left = types; left != 0; left = static_cast<uint16_t>(left & (left - 1)))
    words += kTable[kIndex[static_cast<unsigned>(std::countr_zero(left))]].words;
  return 4 * words;
}

ExtensionView lay_out_block(uint8_t* at, uint16_t types, uint8_t hops) {
  ExtensionView view;
  uint8_t word = 1;
  for (uint16_t left = types; left != 0; left = static_cast<uint16_t>(left & (left - 1))) {
    const auto bit = static_cast<unsigned>(std::countr_zero(left));
    view.word[bit] = word;
    word = static_cast<uint8_t>(word + kTable[kIndex[bit]].words);
    if (bit == static_cast<unsigned>(kIntEcho)) word = static_cast<uint8_t>(word + hops * kHopWords);
  }
  std::memset(at, 0, 4U * word);
  *reinterpret_cast<ExtensionHeader*>(at) = {.words = word, .types = Be16{types}};
  if ((types & bit_of(kIntEcho)) != 0) at[4U * view.word[static_cast<unsigned>(kIntEcho)]] = hops;
  view.block = at;
  view.types = types;
  view.bytes = static_cast<uint16_t>(4 * word);
  view.outcome = ExtensionOutcome::kAccepted;
  return view;
}

ExtensionView parse_extensions(std::span<const uint8_t> bytes, AfterBlock behind, uint16_t allowed) {
  using enum ExtensionOutcome;
  ExtensionView view;
  const auto refuse = [](ExtensionOutcome why) {
    ExtensionView refused;
    refused.outcome = why;
    return refused;
  };
  if (bytes.size() < kExtensionHeaderBytes) return refuse(kTooShort);
  const auto& header = *reinterpret_cast<const ExtensionHeader*>(bytes.data());
  const uint32_t words = header.words;
  const uint16_t types = header.types.get();
  if (header.version_flags >> 4 != kExtensionVersion) return refuse(kBadVersion);
  if ((header.version_flags & 0xf) != 0) return refuse(kReservedFlags);
  if ((types & ~(kKnown & allowed)) != 0) return refuse(kUnknownType);
  if (types == 0) return refuse(kEmpty);
  if (4 * words > bytes.size()) return refuse(kBeyondPacket);

  uint32_t at = 1;
  for (uint16_t left = types; left != 0; left = static_cast<uint16_t>(left & (left - 1))) {
    const auto bit = static_cast<unsigned>(std::countr_zero(left));
    const ExtensionInfo& info = kTable[kIndex[bit]];
    // The fixed part comes first, since it contains the number of hops.
    if (at + info.words > words) return refuse(kBadLength);
    const uint8_t* value = bytes.data() + 4 * static_cast<size_t>(at);
    for (uint32_t i = 0; i < 4U * info.words; ++i) {
      if ((value[i] & info.reserved[i]) != 0) return refuse(kReservedBits);
    }
    view.word[bit] = static_cast<uint8_t>(at);
    at += info.words;
    if (info.words_per_hop == 0) continue;
    if (value[0] > kMaxIntHops) return refuse(kTooManyHops);
    at += uint32_t{value[0]} * info.words_per_hop;
  }
  if (at != words) return refuse(kBadLength);
  if (behind == AfterBlock::kNothing && 4 * words != bytes.size()) return refuse(kTrailingBytes);
  view.block = bytes.data();
  view.types = types;
  view.bytes = static_cast<uint16_t>(4 * words);
  view.outcome = kAccepted;
  return view;
}

ExtendedPayload split_payload(const FrameView& view, uint32_t head_length, uint16_t allowed) {
  ExtendedPayload out{{}, view.payload_offset, view.payload_length};
  if (!view.bth().has_extensions()) return out;
  const uint32_t end = view.payload_offset + view.payload_length;
  const uint32_t reach = std::min(end, head_length);
  const AfterBlock behind =
      view.opcode->payload == PayloadRule::kNone ? AfterBlock::kNothing : AfterBlock::kPayload;
  const std::span<const uint8_t> bytes(view.frame + view.payload_offset,
                                       reach > view.payload_offset ? reach - view.payload_offset : 0);
  out.block = parse_extensions(bytes, behind, allowed);
  const bool cut_short = out.block.outcome == ExtensionOutcome::kTooShort ||
                         out.block.outcome == ExtensionOutcome::kBeyondPacket;
  if (reach < end && cut_short) out.block.outcome = ExtensionOutcome::kOutOfReach;
  out.payload_offset += out.block.bytes;
  out.payload_length -= out.block.bytes;
  return out;
}

}  // namespace roci
