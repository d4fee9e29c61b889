#include "wire/extensions/extensions.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <memory>
#include <set>

#include "wire/roce/packet_fields.hpp"
#include "wire/wire_test_support.hpp"

namespace roci {
namespace {

using test::from_hex;
using test::kAllExtensions;
using test::parse;
using test::random_extensions;

ByteVector written(const ExtensionBlock& block) {
  ByteVector bytes(block.bytes());
  EXPECT_EQ(write_extensions(block, bytes), bytes.size());
  return bytes;
}

// Parses a copy that ends at the end of its allocation, so that AddressSanitizer detects a read beyond it. An
// accepted block is read completely and must be encoded to the same bytes.
ExtensionOutcome try_parse(std::span<const uint8_t> bytes, AfterBlock behind) {
  const auto copy = std::make_unique<uint8_t[]>(bytes.size());
  if (!bytes.empty()) std::memcpy(copy.get(), bytes.data(), bytes.size());
  const ExtensionView view = parse_extensions({copy.get(), bytes.size()}, behind, kAllExtensions);
  if (!view.accepted()) {
    EXPECT_EQ(view.bytes, 0);
    EXPECT_EQ(view.types, 0);
    return view.outcome;
  }
  EXPECT_LE(view.bytes, bytes.size());
  const ByteVector again = written(read_extensions(view));
  EXPECT_TRUE(std::equal(again.begin(), again.end(), bytes.begin(), bytes.begin() + view.bytes));
  return view.outcome;
}

// The types of docs/wire-extensions.md, as an independent copy.
struct TypeRow {
  unsigned bit;
  const char* name;
  unsigned words;
  unsigned per_hop;
};
constexpr TypeRow kTypes[] = {
    {0, "SOURCE-QPN", 1, 0}, {1, "CE-ECHO", 2, 0}, {2, "LSN", 2, 0},    {3, "TS", 2, 0},
    {4, "TS-ECHO", 4, 0},    {5, "RXWIN", 2, 0},   {6, "NFLOWS", 1, 0}, {7, "RATE", 1, 0},
    {8, "INT-ECHO", 1, 4},   {9, "SACK", 3, 0},    {15, "AUTH", 3, 0},
};

TEST(ExtensionTable, matches_documented_types) {
  ASSERT_EQ(extension_table().size(), std::size(kTypes));
  size_t i = 0;
  uint16_t known = 0;
  unsigned words = 1;
  for (const TypeRow& row : kTypes) {
    const ExtensionInfo& info = extension_table()[i++];
    EXPECT_EQ(static_cast<unsigned>(info.type), row.bit);
    EXPECT_EQ(info.name, row.name);
    EXPECT_EQ(info.words, row.words) << row.name;
    EXPECT_EQ(info.words_per_hop, row.per_hop) << row.name;
    EXPECT_EQ(find_extension(row.bit), &info);
    known = static_cast<uint16_t>(known | 1U << row.bit);
    words += row.words + row.per_hop * kMaxIntHops;
  }
  EXPECT_EQ(known_extensions(), known);
  EXPECT_EQ(max_extension_bytes(), 4 * words);
  for (unsigned bit = 0; bit < 20; ++bit)
    EXPECT_EQ(find_extension(bit) != nullptr, (known >> bit & 1U) != 0) << bit;
}

// Every bit of a value belongs to exactly one field or is reserved.
TEST(ExtensionTable, fields_do_not_overlap_and_other_bits_are_reserved) {
  const auto bits_of = [](const ExtensionField& field) {
    std::vector<unsigned> bits;  // counted from the first bit of the value
    for (unsigned bit = field.shift; bit < static_cast<unsigned>(field.shift) + field.bits; ++bit)
      bits.push_back(8U * (static_cast<unsigned>(field.offset) + field.length) - 1 - bit);
    return bits;
  };
  for (const ExtensionInfo& info : extension_table()) {
    std::set<unsigned> used;
    std::set<std::string_view> names;
    for (const ExtensionField& field : info.fields) {
      EXPECT_TRUE(names.insert(field.name).second) << info.name << " " << field.name;
      for (const unsigned bit : bits_of(field)) {
        EXPECT_LT(bit, 32U * info.words) << info.name << " " << field.name;
        EXPECT_TRUE(used.insert(bit).second) << info.name << " " << field.name;
      }
    }
    for (unsigned bit = 0; bit < 32U * info.words; ++bit) {
      EXPECT_EQ((info.reserved[bit / 8] >> (7 - bit % 8) & 1) != 0, !used.contains(bit))
          << info.name << " " << bit;
    }
    unsigned hop_bits = 0;
    for (const ExtensionField& field : info.hop_fields) hop_bits += field.bits;
    EXPECT_EQ(hop_bits, 32U * info.words_per_hop) << info.name;
  }
}

ExtensionBlock full_block() {
  ExtensionBlock b;
  b.source_qp = Qpn{0x000118};
  b.ce_echo = CeEchoValues{100, 3};
  b.lsn = Lsn{0x1'0000'1000};
  b.timestamp = 10'000'000'000;
  b.timestamp_echo = TimestampEchoValues{9'999'990'000, 3000, 1000};
  b.rx_window = RxWindowValues{65536, Psn{0x123456}};
  b.flows = FlowsValues{true, 100'000};
  b.rate = RateValues{true, -50};
  IntEchoValues& echo = b.int_echo.emplace();
  echo.flags = IntEchoHeader::kDelayed;
  echo.age = 12;
  echo.hop_count = 2;
  echo.hops[0] = {0x00002, 7, 2'000'000, 5000, ScaledCount::of(100'000), ScaledCount::of(1500)};
  echo.hops[1] = {0x00001, 3, 1'999'000, 4000, ScaledCount::of(1000), ScaledCount::of(1'000'000)};
  b.sack = SackValues{Psn{0x123460}, 0x8000000000000005};
  b.auth = AuthValues{7, 0x0102030405060708};
  return b;
}

struct Golden {
  const char* what;
  const char* hex;
};
constexpr Golden kFullBlock = {"a block with everything in it",
                               "101f83ff"
                               "00000118"
                               "0000006400000003"
                               "0000000100001000"
                               "00000002540be400"
                               "00000002540bbcf000000bb8000003e8"
                               "0001000000123456"
                               "010186a0"
                               "8fffffce"
                               "0201000c"
                               "00002007001e8480000013885c3505dc"
                               "00001003001e8098 00000fa003e88f42"
                               "001234608000000000000005"
                               "000000070102030405060708"};

TEST(Extensions, layout_matches_documentation) {
  EXPECT_EQ(hex_text(written(full_block())), hex_text(from_hex(kFullBlock.hex)));
  const ByteVector bytes = from_hex(kFullBlock.hex);
  const ExtensionView view = parse_extensions(bytes, AfterBlock::kNothing, kAllExtensions);
  ASSERT_TRUE(view.accepted()) << extension_outcome_name(view.outcome);
  EXPECT_EQ(view.bytes, bytes.size());
  EXPECT_EQ(view.source_qp().qp.get(), 0x118U);
  EXPECT_EQ(view.ce_echo().marked.get(), 3U);
  EXPECT_EQ(view.lsn(), Lsn{0x1'0000'1000});
  EXPECT_EQ(view.timestamp_echo().hold.get(), 3000U);
  ASSERT_EQ(view.hops().size(), 2U);
  EXPECT_EQ(read_hop(view.hops()[0]).rate(), 100_Gbps);
  EXPECT_EQ(read_hop(view.hops()[1]).rate(), 1_Gbps);
  EXPECT_EQ(read_hop(view.hops()[1]).queue_bytes.value(), 0xf42U << 8) << "rounded down from 1,000,000";
  EXPECT_EQ(view.sack().psn.get(), 0x123460U);
  EXPECT_EQ(view.auth().mac.get(), 0x0102030405060708U);
  EXPECT_EQ(read_extensions(view), full_block());
}

TEST(Extensions, round_trip_preserves_any_values) {
  Rng rng{21};
  for (int round = 0; round < 5000; ++round) {
    const ExtensionBlock block = random_extensions(rng);
    ByteVector bytes = written(block);
    EXPECT_LE(bytes.size(), max_extension_bytes());
    ExtensionView view = parse_extensions(bytes, AfterBlock::kNothing, kAllExtensions);
    ASSERT_TRUE(view.accepted()) << extension_outcome_name(view.outcome);
    EXPECT_EQ(view.types, block.types());
    EXPECT_EQ(read_extensions(view), block);
    // Followed by a payload.
    const size_t length = bytes.size();
    bytes.resize(length + rng.between(1, 9), 0xee);
    EXPECT_EQ(parse_extensions(bytes, AfterBlock::kNothing, kAllExtensions).outcome,
              ExtensionOutcome::kTrailingBytes);
    view = parse_extensions(bytes, AfterBlock::kPayload, kAllExtensions);
    ASSERT_TRUE(view.accepted());
    EXPECT_EQ(view.bytes, length);
    // One type of the block is not permitted.
    const auto types = block.types();
    for (unsigned bit = 0; bit < 16; ++bit) {
      if ((types >> bit & 1U) == 0) continue;
      EXPECT_EQ(parse_extensions(bytes, AfterBlock::kPayload, static_cast<uint16_t>(~(1U << bit))).outcome,
                ExtensionOutcome::kUnknownType);
      EXPECT_TRUE(parse_extensions(bytes, AfterBlock::kPayload, types).accepted());
    }
  }
}

// The in-place writer of the data path writes the same bytes as ExtensionBlock.
TEST(Extensions, in_place_layout_equals_written_block) {
  Rng rng{22};
  for (int round = 0; round < 2000; ++round) {
    ExtensionBlock block = random_extensions(rng);
    block.int_echo.reset();
    const uint16_t types = block.types();
    EXPECT_EQ(fixed_block_bytes(types), block.bytes());
    if (types == 0) continue;
    ByteVector place(block.bytes(), 0xee);
    const ExtensionView laid_out = lay_out_block(place.data(), types);
    const ExtensionView parsed = parse_extensions(place, AfterBlock::kNothing, kAllExtensions);
    ASSERT_TRUE(parsed.accepted()) << extension_outcome_name(parsed.outcome);
    EXPECT_EQ(laid_out.types, parsed.types);
    EXPECT_EQ(laid_out.bytes, parsed.bytes);
    EXPECT_EQ(laid_out.word, parsed.word);
    EXPECT_EQ(read_extensions(laid_out), read_extensions(parsed));
    if (!block.lsn) continue;
    value_to_write<LsnValue>(laid_out, ExtensionType::kLsn).lsn.set(block.lsn->value());
    EXPECT_EQ(parse_extensions(place, AfterBlock::kNothing, kAllExtensions).lsn(), *block.lsn);
  }
}

TEST(Extensions, writes_nothing_without_space_or_values) {
  ByteVector out(max_extension_bytes(), 0xee);
  EXPECT_EQ(write_extensions({}, out), 0U);
  EXPECT_EQ(ExtensionBlock{}.bytes(), 0U);
  const ExtensionBlock block = full_block();
  for (size_t room = 0; room < block.bytes(); ++room) {
    EXPECT_EQ(write_extensions(block, std::span(out).first(room)), 0U);
  }
  EXPECT_EQ(out, ByteVector(max_extension_bytes(), 0xee));
}

TEST(Extensions, out_of_range_values_are_clamped) {
  struct Row {
    RateValues in;
    int32_t out;
  };
  const Row rows[] = {{{false, -1}, 0},
                      {{false, 1 << 28}, (1 << 28) - 1},
                      {{false, (1 << 28) - 1}, (1 << 28) - 1},
                      {{true, 1 << 27}, (1 << 27) - 1},
                      {{true, -(1 << 27) - 1}, -(1 << 27)},
                      {{true, -1}, -1},
                      {{true, INT32_MIN}, -(1 << 27)}};
  for (const Row& row : rows) {
    ExtensionBlock block;
    block.rate = row.in;
    const ByteVector bytes = written(block);
    const auto back = read_extensions(parse_extensions(bytes, AfterBlock::kNothing, kAllExtensions));
    EXPECT_EQ(back.rate, (RateValues{row.in.delta, row.out})) << row.in.rate;
  }
  ExtensionBlock block;
  block.flows = FlowsValues{false, 0x1000000};
  block.int_echo.emplace().hop_count = 200;
  const ByteVector bytes = written(block);
  const auto back = read_extensions(parse_extensions(bytes, AfterBlock::kNothing, kAllExtensions));
  EXPECT_EQ(back.flows->count, 0xffffffU);
  EXPECT_EQ(back.int_echo->hop_count, kMaxIntHops);
}

struct OutcomeRow {
  const char* what;
  const char* hex;
  ExtensionOutcome outcome;
};

TEST(Extensions, every_error_has_a_specific_outcome) {
  using enum ExtensionOutcome;
  const OutcomeRow rows[] = {
      {"an LSN", "10030004 0000000000000001", kAccepted},
      {"nothing", "", kTooShort},
      {"half a header", "100300", kTooShort},
      {"version 0", "00030004 0000000000000001", kBadVersion},
      {"version 2", "20030004 0000000000000001", kBadVersion},
      {"a flag", "11030004 0000000000000001", kReservedFlags},
      {"bit 10", "10010400", kUnknownType},
      {"bit 14 with an LSN", "10034004 0000000000000001", kUnknownType},
      {"no type", "10010000", kEmpty},
      {"no type and no words", "10000000", kEmpty},
      {"more words than bytes", "10040004 0000000000000001", kBeyondPacket},
      {"a word too many", "10040004 0000000000000001 00000000", kBadLength},
      {"a word too few", "10020004 0000000000000001", kBadLength},
      {"no words", "10000004 0000000000000001", kBadLength},
      {"bytes behind", "10030004 0000000000000001 00", kTrailingBytes},
      {"a source QPN of 25 bits", "10020001 01000118", kReservedBits},
      {"an unknown flag of NFLOWS", "10020040 02000001", kReservedBits},
      {"an unknown flag of RATE", "10020080 10000001", kReservedBits},
      {"an unknown flag of INT-ECHO", "10020100 00100000", kReservedBits},
      {"a byte before the PSN of SACK", "10040200 01000001 0000000000000001", kReservedBits},
      {"a byte before the PSN of RXWIN", "10030020 00000001 01000001", kReservedBits},
      {"INT-ECHO without hops", "10020100 00000000", kAccepted},
      {"INT-ECHO with a hop that is not there", "10020100 01000000", kBadLength},
      {"INT-ECHO of 17 hops", "10020100 11000000", kTooManyHops},
      {"INT-ECHO of 255 hops", "10020100 ff000000", kTooManyHops},
  };
  for (const OutcomeRow& row : rows) {
    const ExtensionOutcome found = try_parse(from_hex(row.hex), AfterBlock::kNothing);
    EXPECT_EQ(found, row.outcome) << row.what << ": " << extension_outcome_name(found);
  }
}

TEST(Extensions, truncated_block_is_rejected_without_reading_beyond_it) {
  const ByteVector bytes = written(full_block());
  for (size_t length = 0; length < bytes.size(); ++length) {
    const auto part = std::span(bytes).first(length);
    EXPECT_EQ(try_parse(part, AfterBlock::kPayload),
              length < 4 ? ExtensionOutcome::kTooShort : ExtensionOutcome::kBeyondPacket);
  }
}

TEST(Extensions, randomly_changed_blocks_are_parsed_safely) {
  Rng rng{22};
  unsigned outcomes[kExtensionOutcomeCount] = {};
  for (int round = 0; round < 100'000; ++round) {
    ByteVector bytes = written(random_extensions(rng));
    for (uint64_t changes = rng.between(1, 3); changes > 0; --changes) {
      // half of the changes affect the header
      const size_t span = rng.chance(0.5) ? 4 : bytes.size();
      bytes[rng.below(span)] = static_cast<uint8_t>(rng.next());
    }
    if (rng.chance(0.05)) bytes[2] = bytes[3] = 0;
    if (rng.chance(0.3)) bytes.resize(rng.below(bytes.size() + 8));
    ++outcomes[static_cast<unsigned>(
        try_parse(bytes, rng.chance(0.5) ? AfterBlock::kNothing : AfterBlock::kPayload))];
    if (HasFailure()) FAIL() << "round " << round;
  }
  using enum ExtensionOutcome;
  for (unsigned i = 0; i < kExtensionOutcomeCount; ++i) {
    const auto outcome = static_cast<ExtensionOutcome>(i);
    const bool of_packets_only = outcome == kAbsent || outcome == kOutOfReach;
    if (!of_packets_only) {
      EXPECT_GT(outcomes[i], 100U) << extension_outcome_name(outcome) << " was hardly met";
    }
  }
}

TEST(Extensions, outcome_names_are_unique) {
  std::set<std::string_view> names;
  for (unsigned i = 0; i < kExtensionOutcomeCount; ++i) {
    EXPECT_TRUE(names.insert(extension_outcome_name(static_cast<ExtensionOutcome>(i))).second) << i;
  }
  EXPECT_FALSE(names.contains(""));
}

TEST(ScaledCount, is_exact_below_4096_and_for_link_rates_and_rounds_down) {
  for (uint32_t value = 0; value < 4096; ++value) EXPECT_EQ(ScaledCount::of(value).value(), value);
  for (const uint32_t gbps : {1U, 10U, 25U, 40U, 50U, 56U, 100U, 200U, 400U, 800U, 1600U}) {
    EXPECT_EQ(ScaledCount::of(gbps * 1000).value(), gbps * 1000) << gbps;
  }
  Rng rng{23};
  for (int round = 0; round < 100'000; ++round) {
    const uint64_t value = rng.next() >> rng.below(64);
    const uint64_t said = ScaledCount::of(value).value();
    EXPECT_LE(said, value);
    if (value < ScaledCount::kMax) {
      EXPECT_LE(value - said, value / 2048);
    }
  }
  EXPECT_EQ(ScaledCount::of(UINT64_MAX).value(), ScaledCount::kMax);
  EXPECT_EQ(ScaledCount::of(ScaledCount::kMax).value(), ScaledCount::kMax);
  EXPECT_EQ(ScaledCount::of(ScaledCount::kMax - 1).value(), 0xffeU << 15);
}

TEST(PayloadSplit, separates_extension_block_and_payload) {
  Rng rng{24};
  unsigned with_block = 0;
  for (int round = 0; round < 2000; ++round) {
    const OpcodeInfo& info = opcode_table()[rng.below(opcode_table().size())];
    const size_t length = info.payload == PayloadRule::kNone ? 0 : rng.between(1, 40);
    Packet p = test::random_packet(rng, info.opcode, rng.chance(0.5), 0, length);
    if (!p.extensions) p.bth.reserved7 &= 0x3f;
    const ByteVector bytes = encode_packet(p.finish());
    const FrameView view = parse(bytes);
    const auto all = static_cast<uint32_t>(bytes.size());
    const ExtendedPayload split = split_payload(view, all, kAllExtensions);
    EXPECT_EQ(split.payload_length, length);
    EXPECT_EQ(check_payload(info, split.payload_length, view.pad, static_cast<uint32_t>(length)),
              PayloadCheck::kRight);
    EXPECT_EQ(ByteVector(bytes.data() + split.payload_offset, bytes.data() + split.payload_offset + length),
              p.payload);
    if (!p.extensions) {
      EXPECT_EQ(split.block.outcome, ExtensionOutcome::kAbsent);
      continue;
    }
    ++with_block;
    ASSERT_TRUE(split.block.accepted()) << extension_outcome_name(split.block.outcome);
    EXPECT_EQ(read_extensions(split.block), *p.extensions);
    // A peer without an agreement must not send a block.
    EXPECT_EQ(split_payload(view, all, 0).block.outcome, ExtensionOutcome::kUnknownType);
  }
  EXPECT_GT(with_block, 300U);
}

TEST(PayloadSplit, block_beyond_first_segment_is_reported_out_of_reach) {
  const ExtensionBlock block = full_block();
  const ByteVector bytes = encode_packet(
      make_packet(Opcode::kRcSendOnly).with_extensions(block).with_payload(ByteVector(9)).finish());
  const FrameView whole = parse(bytes);
  for (uint32_t head = whole.payload_offset; head <= bytes.size(); ++head) {
    const auto first = std::make_unique<uint8_t[]>(head);
    std::memcpy(first.get(), bytes.data(), head);
    const FrameView view = parse_frame(first.get(), head, static_cast<uint32_t>(bytes.size()));
    ASSERT_EQ(view.kind, FrameKind::kRoce);
    const ExtendedPayload split = split_payload(view, head, kAllExtensions);
    EXPECT_EQ(split.block.outcome, head < whole.payload_offset + block.bytes() ? ExtensionOutcome::kOutOfReach
                                                                               : ExtensionOutcome::kAccepted);
  }
}

TEST(PayloadSplit, rejects_acknowledgment_with_trailing_bytes) {
  Packet p = make_packet(Opcode::kRcAcknowledge).with_extensions(full_block());
  p.with_payload(ByteVector(4));
  const ByteVector bytes = encode_packet(p.finish());
  const auto length = static_cast<uint32_t>(bytes.size());
  EXPECT_EQ(split_payload(parse(bytes), length, kAllExtensions).block.outcome,
            ExtensionOutcome::kTrailingBytes);
}

// The packet from the BTH to the end of the payload, as printed in the document.
ByteVector from_bth(const Packet& packet) {
  const ByteVector bytes = encode_packet(packet);
  return {bytes.begin() + parse(bytes).bth_offset, bytes.end() - kIcrcBytes};
}

constexpr Golden kAck = {"an ACK with CE-ECHO, LSN and TS-ECHO",
                         "1100ffff 00000011 40123456 1f000005"
                         "10090016 0000006400000003 0000000100001000 00000002540bbcf0 00000bb8 000003e8"};
constexpr Golden kData = {"a SEND of 5 bytes with SOURCE-QPN and TS",
                          "0430ffff 00000011 c0000009 10040009 00000118 00000002540be400 0102030405 000000"};
constexpr Golden kProbe = {"CC_PROBE",
                           "e000ffff 00000011 00123456 0000002a 0003 0000 00000002540be400 0000000100001000"};
constexpr Golden kProbeResponse = {
    "CC_PROBE_RESP",
    "e100ffff 00000118 00123456 0000002a 0003 0000 00000002540be400 0000000100000000"
    "0000000000000064 00000000000000c8 0102030405060708090a0b0c"};
constexpr Golden kReadAck = {"CC_RRACK", "e200ffff 00000011 40123456 1f000005 10030002 00000064 00000003"};
constexpr Golden kIntResponse = {"CC_INT_RESP",
                                 "e300ffff 00000118 00123456 0001 0000 0000000100001000"
                                 "00002007 001e8480 00001388 5c35 05dc 0700ffff 00000011 00123456"};
constexpr Golden kRxWindow = {"CC_RXW", "e400ffff 00000118 40123456 10030020 00010000 00123456"};

TEST(WireExtensions, packets_match_documentation) {
  const ExtensionBlock full = full_block();
  std::vector<std::pair<Golden, Packet>> packets;
  ExtensionBlock ack;
  ack.ce_echo = full.ce_echo;
  ack.lsn = full.lsn;
  ack.timestamp_echo = full.timestamp_echo;
  packets.emplace_back(kAck, make_packet(Opcode::kRcAcknowledge)
                                 .to(Qpn{0x11}, Psn{0x123456})
                                 .with_aeth(0x1f, Msn{5})
                                 .with_extensions(ack));
  ExtensionBlock data;
  data.source_qp = full.source_qp;
  data.timestamp = full.timestamp;
  packets.emplace_back(kData, make_packet(Opcode::kRcSendOnly)
                                  .to(Qpn{0x11}, Psn{9})
                                  .requesting_ack()
                                  .with_extensions(data)
                                  .with_payload(ByteVector{1, 2, 3, 4, 5}));
  Packet probe = make_packet(Opcode::kCcProbe).to(Qpn{0x11}, Psn{0x123456});
  probe.probe = ProbeValues{42, Probe::kRtt | Probe::kInt, 0, 10'000'000'000, Lsn{0x1'0000'1000}};
  packets.emplace_back(kProbe, probe);
  Packet response = make_packet(Opcode::kCcProbeResponse).to(Qpn{0x118}, Psn{0x123456});
  response.probe = probe.probe;
  response.probe->lsn = Lsn{0x1'0000'0000};
  response.probe_times = ProbeTimesValues{100, 200, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}};
  packets.emplace_back(kProbeResponse, response);
  ExtensionBlock marks;
  marks.ce_echo = full.ce_echo;
  packets.emplace_back(kReadAck, make_packet(Opcode::kCcReadAcknowledge)
                                     .to(Qpn{0x11}, Psn{0x123456})
                                     .with_aeth(0x1f, Msn{5})
                                     .with_extensions(marks));
  Packet report = make_packet(Opcode::kCcIntResponse).to(Qpn{0x118}, Psn{0x123456});
  report.int_report = IntReportValues{IntReport::kLsnKnown, 0, *full.lsn, full.int_echo->hops[0], {}};
  const ByteVector sampled = from_hex("0700ffff 00000011 00123456");
  std::copy(sampled.begin(), sampled.end(), report.int_report->sampled.begin());
  packets.emplace_back(kIntResponse, report);
  ExtensionBlock window;
  window.rx_window = full.rx_window;
  packets.emplace_back(
      kRxWindow, make_packet(Opcode::kCcRxWindow).to(Qpn{0x118}, Psn{0x123456}).with_extensions(window));

  for (auto& [golden, packet] : packets) {
    SCOPED_TRACE(golden.what);
    EXPECT_EQ(hex_text(from_bth(packet.finish())), hex_text(from_hex(golden.hex)));
    const auto decoded = decode_packet(encode_packet(packet));
    ASSERT_TRUE(decoded) << decoded.error().message;
    EXPECT_EQ(*decoded, packet) << ::testing::PrintToString(packet_differences(*decoded, packet));
  }
}

TEST(WireExtensions, documentation_contains_the_tested_bytes) {
  std::ifstream file(ROCI_SOURCE_DIR "/docs/wire-extensions.md");
  std::string text;
  for (char c = 0; file.get(c);) {
    if (c != ' ' && c != '\n') text += c;
  }
  for (const Golden& golden :
       {kFullBlock, kAck, kData, kProbe, kProbeResponse, kReadAck, kIntResponse, kRxWindow}) {
    EXPECT_NE(text.find(hex_text(from_hex(golden.hex))), std::string::npos) << golden.what;
  }
  for (const ExtensionInfo& info : extension_table()) {
    EXPECT_NE(text.find(info.name), std::string::npos) << info.name;
  }
}

TEST(PacketFields, name_the_fields_of_extensions) {
  const Packet packet =
      make_packet(Opcode::kRcAcknowledge).to(Qpn{5}, Psn{7}).with_extensions(full_block()).finish();
  Packet other = packet;
  other.extensions->ce_echo->marked = 4;
  other.extensions->int_echo->hops[1].port = 9;
  other.extensions->rate->rate = -51;
  const std::vector<std::string> wanted = {"ce_echo.marked: 3 and 4", "rate.rate: 268435406 and 268435405",
                                           "int_echo_hop1.port: 3 and 9", "data.icrc"};
  const auto found = packet_differences(packet, other.finish());
  ASSERT_EQ(found.size(), wanted.size()) << ::testing::PrintToString(found);
  for (size_t i = 0; i < found.size(); ++i) EXPECT_EQ(found[i].substr(0, wanted[i].size()), wanted[i]);
}

}  // namespace
}  // namespace roci
