#include "wire/int/telemetry_edit.hpp"

#include <gtest/gtest.h>

#include "wire/icrc/icrc.hpp"
#include "wire/int/telemetry_values.hpp"
#include "wire/net/rewrite.hpp"
#include "wire/roce/packet_fields.hpp"
#include "wire/wire_test_support.hpp"

namespace roci {
namespace {

using test::from_hex;
using test::kTelemetryDomain;
using test::kTelemetryPort;
using test::RoomyFrame;

constexpr uint32_t kMtu = 9000;

IntSource source(uint16_t instructions = 0,
                 uint16_t domain_instructions = int_domain_instruction::kCompactHop) {
  IntSource s;
  s.port = kTelemetryPort;
  s.instructions = instructions;
  s.domain = kTelemetryDomain;
  s.domain_instructions = domain_instructions;
  return s;
}

HopReport example_report(uint32_t switch_id = 0x12345) {
  HopReport r;
  r.switch_id = switch_id;
  r.ingress_port = 0x0102;
  r.egress_port = 0x0678;
  r.queue = 3;
  r.ingress_time = 0x0a0b'0000;
  r.egress_time = 0x0a0b'0c0d;
  r.tx_bytes = 0x1000;
  r.queue_bytes = 6000;
  r.rate = 10_Gbps;
  return r;
}

IntView view_of(const FrameFront& frame) { return parse_int(frame.head(), frame.length, kTelemetryPort); }

IntEdit push(FrameFront& frame, const HopReport& r, uint16_t domain = kTelemetryDomain, uint32_t mtu = kMtu) {
  const IntView view = view_of(frame);
  EXPECT_TRUE(view.accepted()) << int_outcome_name(view.outcome);
  return push_int_hop(frame, view, r, domain, mtu);
}

// The ACK of icrc_test.cpp; a separate program computed its ICRC.
const std::string kMacsAndIpv4 = "020000000002 020000000001 0800";
const std::string kBehindUdp = "1140ffff0000001100123456 1f000005 6d4ab86b";
ByteVector golden_ack() {
  return from_hex(kMacsAndIpv4 + "4502003000014000401126b80a0000010a000002 c00012b7001c0000" + kBehindUdp);
}

// A source, two switches and a sink. Expects the bytes of INT v2.1 after each step, and the original packet at the
// end.
TEST(IntEdit, bytes_at_each_step_match_the_standard) {
  RoomyFrame frame(golden_ack());
  IntSource s = source();
  s.domain_flags = int_domain_flag::kWantsResponse;
  ASSERT_EQ(begin_int(frame.front, s, kMtu), IntEdit::kDone);
  EXPECT_EQ(hex_text(frame.bytes()),
            hex_text(from_hex(kMacsAndIpv4 +
                              "4502004000014000401126a80a0000010a000002 c0001388002c0000"
                              "140312b7 20000410 00000007 80008000" +
                              kBehindUdp)));
  ASSERT_EQ(push(frame.front, example_report()), IntEdit::kDone);
  EXPECT_EQ(hex_text(frame.bytes()),
            hex_text(from_hex(kMacsAndIpv4 +
                              "4502005000014000401126980a0000010a000002 c0001388003c0000"
                              "140712b7 2000040f 00000007 80008000"
                              "12345678 0a0b0c0d 00000200 29c41bb8" +
                              kBehindUdp)));
  ASSERT_EQ(push(frame.front, example_report(0x54321)), IntEdit::kDone);
  EXPECT_EQ(hex_text(frame.bytes()),
            hex_text(from_hex(kMacsAndIpv4 +
                              "4502006000014000401126880a0000010a000002 c0001388004c0000"
                              "140b12b7 2000040e 00000007 80008000"
                              "54321678 0a0b0c0d 00000200 29c41bb8"
                              "12345678 0a0b0c0d 00000200 29c41bb8" +
                              kBehindUdp)));
  EXPECT_EQ(view_of(frame.front).hop(0, kTelemetryDomain)->switch_id, 0x54321);
  strip_int(frame.front, view_of(frame.front));
  EXPECT_EQ(hex_text(frame.bytes()), hex_text(golden_ack()));
  EXPECT_EQ(frame.front.headroom, 128);
}

// All instructions, including reserved ones: values in the order of the bits, domain values before the checksum
// complement, and all ones for unsupported ones.
TEST(IntEdit, hop_contains_all_requested_values_in_order) {
  RoomyFrame frame(golden_ack(), 256);
  ASSERT_EQ(begin_int(frame.front, source(0xffff), kMtu), IntEdit::kDone);
  ASSERT_EQ(push(frame.front, example_report()), IntEdit::kDone);
  const IntView view = view_of(frame.front);
  ASSERT_EQ(view.hop_bytes, 92);
  EXPECT_EQ(hex_text(std::span(view.frame + view.stack_offset(), view.hop_bytes)),
            hex_text(from_hex("00012345 01020678 00000c0d 03001770 000000000a0b0000 000000000a0b0c0d"
                              "ffffffffffffffff ffffffff ffffffff"
                              "ffffffff ffffffff ffffffff ffffffff ffffffff ffffffff"
                              "12345678 0a0b0c0d 00000200 29c41bb8 ffffffff")));
  ASSERT_TRUE(view.hop(0, kTelemetryDomain));
  EXPECT_EQ(*view.hop(0, kTelemetryDomain), compact_hop(example_report()));
}

TEST(IntEdit, full_hop_contains_values_without_scaling) {
  RoomyFrame frame(golden_ack());
  ASSERT_EQ(begin_int(frame.front, source(0, int_domain_instruction::kFullHop), kMtu), IntEdit::kDone);
  ASSERT_EQ(push(frame.front, example_report()), IntEdit::kDone);
  const IntView view = view_of(frame.front);
  ASSERT_NE(view.full(0, kTelemetryDomain), nullptr);
  EXPECT_EQ(hex_text(std::span(view.frame + view.stack_offset(), view.hop_bytes)),
            hex_text(from_hex("00012345 0102 0678 000000000a0b0c0d 0000000000001000 00001770 00002710")));
  EXPECT_EQ(*view.hop(0, kTelemetryDomain), compact_hop(example_report()));
}

// A value is never reported as all ones, which means "unknown".
TEST(IntEdit, values_saturate_below_all_ones) {
  RoomyFrame frame(golden_ack());
  const IntSource s = source(int_instruction::kHopLatency | int_instruction::kQueue, 0);
  ASSERT_EQ(begin_int(frame.front, s, kMtu), IntEdit::kDone);
  HopReport r = example_report();
  r.queue = 0xff;
  r.queue_bytes = UINT64_MAX;
  r.ingress_time = 0;
  r.egress_time = UINT64_MAX;
  ASSERT_EQ(push(frame.front, r), IntEdit::kDone);
  const IntView view = view_of(frame.front);
  EXPECT_EQ(hex_text(std::span(view.frame + view.stack_offset(), view.hop_bytes)), "fffffffefffffffe");
}

TEST(IntEdit, metadata_of_another_domain_is_all_ones) {
  RoomyFrame frame(golden_ack());
  ASSERT_EQ(begin_int(frame.front, source(int_instruction::kNodeId), kMtu), IntEdit::kDone);
  ASSERT_EQ(push(frame.front, example_report(), kTelemetryDomain + 1), IntEdit::kDone);
  const IntView view = view_of(frame.front);
  EXPECT_EQ(hex_text(std::span(view.frame + view.stack_offset(), view.hop_bytes)),
            "00012345ffffffffffffffffffffffffffffffff");
  EXPECT_FALSE(view.hop(0, kTelemetryDomain));
}

// The flags of the INT header.
uint32_t flags_of(const FrameFront& frame) { return view_of(frame).header().flags.get(); }

TEST(IntEdit, exhausted_hop_count_sets_only_the_e_bit) {
  RoomyFrame frame(golden_ack());
  IntSource s = source();
  s.hops = 1;
  ASSERT_EQ(begin_int(frame.front, s, kMtu), IntEdit::kDone);
  ASSERT_EQ(push(frame.front, example_report()), IntEdit::kDone);
  const uint32_t flags = flags_of(frame.front);
  ByteVector wanted = frame.bytes();
  wanted[14 + 20 + 8 + 4] |= 0x04;
  EXPECT_EQ(push(frame.front, example_report()), IntEdit::kHopsExceeded);
  EXPECT_EQ(hex_text(frame.bytes()), hex_text(wanted));
  EXPECT_EQ(flags_of(frame.front), flags | IntMdHeader::kHopsExceeded);
  EXPECT_EQ(push(frame.front, example_report()), IntEdit::kHopsExceeded);
  EXPECT_EQ(hex_text(frame.bytes()), hex_text(wanted));
}

// Space only for the headers: the source adds them and sets M, because its own hop is missing.
TEST(IntEdit, exceeded_mtu_sets_only_the_m_bit) {
  const uint32_t bytes = 48;  // length of the ACK as an IP packet
  RoomyFrame frame(golden_ack());
  EXPECT_EQ(begin_int(frame.front, source(), bytes + 15), IntEdit::kMtuExceeded);
  EXPECT_EQ(frame.bytes(), golden_ack());
  ASSERT_EQ(begin_int(frame.front, source(), bytes + 16), IntEdit::kDone);
  ByteVector wanted = frame.bytes();
  wanted[14 + 20 + 8 + 4] |= 0x02;
  EXPECT_EQ(push(frame.front, example_report(), kTelemetryDomain, bytes + 31), IntEdit::kMtuExceeded);
  EXPECT_EQ(hex_text(frame.bytes()), hex_text(wanted));
  EXPECT_EQ(push(frame.front, example_report(), kTelemetryDomain, bytes + 32), IntEdit::kDone);
  EXPECT_TRUE(view_of(frame.front).header().has(IntMdHeader::kMtuExceeded)) << "stays";
  EXPECT_EQ(view_of(frame.front).hop_count, 1);
}

TEST(IntEdit, packet_never_exceeds_ip_length_limit) {
  Packet packet = make_packet(Opcode::kRcSendOnly);
  packet.with_payload(ByteVector(65448));  // 65492 as an IP packet
  RoomyFrame frame(encode_packet(packet.finish()));
  ASSERT_EQ(begin_int(frame.front, source(), UINT32_MAX), IntEdit::kDone);
  EXPECT_EQ(push(frame.front, example_report(), kTelemetryDomain, UINT32_MAX), IntEdit::kDone);
  EXPECT_EQ(push(frame.front, example_report(), kTelemetryDomain, UINT32_MAX), IntEdit::kMtuExceeded);
}

TEST(IntEdit, source_hop_count_is_limited_by_shim_length) {
  RoomyFrame frame(golden_ack(), 2048);
  IntSource s = source();
  s.hops = 255;
  ASSERT_EQ(begin_int(frame.front, s, kMtu), IntEdit::kDone);
  EXPECT_EQ(view_of(frame.front).header().hops_left(), 63);
  for (int i = 0; i < 63; ++i) ASSERT_EQ(push(frame.front, example_report()), IntEdit::kDone) << i;
  EXPECT_EQ(view_of(frame.front).shim().words, 255);
  EXPECT_EQ(push(frame.front, example_report()), IntEdit::kHopsExceeded);
  strip_int(frame.front, view_of(frame.front));
  EXPECT_EQ(frame.bytes(), golden_ack());
}

// The source announced too many hops.
TEST(IntEdit, full_stack_sets_hop_count_exceeded) {
  RoomyFrame frame(golden_ack(), 2048);
  IntSource s = source();
  s.hops = 63;
  ASSERT_EQ(begin_int(frame.front, s, kMtu), IntEdit::kDone);
  frame.front.data[14 + 20 + 8 + 4 + 3] = 255;
  for (int i = 0; i < 63; ++i) ASSERT_EQ(push(frame.front, example_report()), IntEdit::kDone) << i;
  EXPECT_EQ(push(frame.front, example_report()), IntEdit::kStackFull);
  EXPECT_TRUE(view_of(frame.front).header().has(IntMdHeader::kHopsExceeded));
  EXPECT_EQ(view_of(frame.front).hop_count, 63);
  EXPECT_EQ(view_of(frame.front).header().hops_left(), 255 - 63);
}

TEST(IntEdit, hop_length_mismatch_adds_no_hop) {
  RoomyFrame frame(golden_ack());
  ASSERT_EQ(begin_int(frame.front, source(int_instruction::kNodeId), kMtu), IntEdit::kDone);
  const size_t words_at = 14 + 20 + 8 + 4 + 2;
  for (const uint8_t words : {uint8_t{0}, uint8_t{4}, uint8_t{6}, uint8_t{31}}) {
    frame.front.data[words_at] = words;
    const ByteVector before = frame.bytes();
    EXPECT_EQ(push(frame.front, example_report()), IntEdit::kSkipped) << int{words};
    EXPECT_EQ(frame.bytes(), before);
  }
  frame.front.data[words_at] = 0;
  EXPECT_EQ(push(frame.front, example_report(), kTelemetryDomain + 1), IntEdit::kSkipped)
      << "shorter than the standard's part";
}

TEST(IntEdit, changes_nothing_without_headroom) {
  RoomyFrame none(golden_ack(), 15);
  EXPECT_EQ(begin_int(none.front, source(), kMtu), IntEdit::kNoHeadroom);
  EXPECT_EQ(none.bytes(), golden_ack());
  RoomyFrame little(golden_ack(), 31);
  ASSERT_EQ(begin_int(little.front, source(), kMtu), IntEdit::kDone);
  const ByteVector before = little.bytes();
  EXPECT_EQ(push(little.front, example_report()), IntEdit::kNoHeadroom);
  EXPECT_EQ(little.bytes(), before);
}

TEST(IntEdit, starts_only_on_complete_roce_packets_with_valid_source) {
  RoomyFrame frame(golden_ack());
  IntSource bad = source(0, 0);
  EXPECT_EQ(begin_int(frame.front, bad, kMtu), IntEdit::kBadSource) << "asks for nothing";
  bad = source(0xffff, int_domain_instruction::kCompactHop | int_domain_instruction::kFullHop);
  ASSERT_EQ(int_hop_words(bad), 31);
  EXPECT_EQ(begin_int(frame.front, bad, kMtu), IntEdit::kDone) << "the most there can be";
  EXPECT_EQ(begin_int(frame.front, source(), kMtu), IntEdit::kNotRoce) << "again";
  bad = source();
  bad.port = kRoceUdpPort;
  EXPECT_EQ(begin_int(frame.front, bad, kMtu), IntEdit::kBadSource);

  const auto begin_on = [](const ByteVector& bytes) {
    RoomyFrame other(bytes);
    const IntEdit edit = begin_int(other.front, source(), kMtu);
    EXPECT_EQ(other.bytes() == bytes, edit != IntEdit::kDone);
    return edit;
  };
  ByteVector other = golden_ack();
  other[13] = 0x06;
  EXPECT_EQ(begin_on(other), IntEdit::kNotRoce) << "ARP";
  other = golden_ack();
  other[14 + 6] = 0x20;
  EXPECT_EQ(begin_on(other), IntEdit::kNotRoce) << "a fragment";
  other = golden_ack();
  other[14 + 20 + 2] = 0x13;
  EXPECT_EQ(begin_on(other), IntEdit::kNotRoce) << "another port";
  other = golden_ack();
  other.pop_back();
  EXPECT_EQ(begin_on(other), IntEdit::kNotRoce) << "cut";
  for (unsigned i = 0; i < kIntEditCount; ++i) EXPECT_FALSE(int_edit_name(static_cast<IntEdit>(i)).empty());
}

TEST(IntEdit, discard_option_sets_the_discard_bit) {
  RoomyFrame frame(golden_ack());
  IntSource s = source();
  s.discard = true;
  ASSERT_EQ(begin_int(frame.front, s, kMtu), IntEdit::kDone);
  EXPECT_TRUE(view_of(frame.front).header().has(IntMdHeader::kDiscard));
}

// RFC 1071, one 16-bit word at a time.
uint16_t plain_sum(const ByteVector& bytes) {
  uint32_t sum = 0;
  for (size_t i = 0; i < bytes.size(); i += 2)
    sum += static_cast<uint32_t>(bytes[i] << 8) + (i + 1 < bytes.size() ? bytes[i + 1] : 0U);
  while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<uint16_t>(sum);
}

// Expects a correct IPv4 checksum, and a correct UDP checksum if present.
void expect_right_checksums(const FrameFront& frame) {
  const UdpLocation where = find_udp(frame.head(), frame.length);
  ASSERT_EQ(where.outcome, UdpOutcome::kFound);
  if (!where.ipv6) {
    EXPECT_EQ(plain_sum({frame.data + where.l3_offset, frame.data + where.l4_offset}), 0xffff);
  }
  const auto& udp = *reinterpret_cast<const UdpHeader*>(frame.data + where.l4_offset);
  if (udp.checksum.get() == 0) return;
  const uint8_t* addresses = frame.data + where.l3_offset + (where.ipv6 ? 8 : 12);
  ByteVector covered(addresses, addresses + (where.ipv6 ? 32 : 8));
  const uint32_t length = where.end - where.l4_offset;
  covered.insert(covered.end(),
                 {0, kProtocolUdp, static_cast<uint8_t>(length >> 8), static_cast<uint8_t>(length)});
  covered.insert(covered.end(), frame.data + where.l4_offset, frame.data + where.end);
  EXPECT_EQ(plain_sum(covered), 0xffff);
}

// Adds INT headers, and expects that the returned view equals a parsed one.
IntEdit begin(FrameFront& frame, const IntSource& s) {
  IntView begun;
  const IntEdit edit = begin_int(frame, find_udp(frame.head(), frame.length), s, kMtu, begun);
  const IntView parsed = view_of(frame);
  EXPECT_EQ(begun.frame, parsed.frame);
  EXPECT_EQ(begun.outcome, parsed.outcome);
  EXPECT_EQ(begun.hop_bytes, parsed.hop_bytes);
  EXPECT_EQ(begun.hop_count, parsed.hop_count);
  EXPECT_EQ(begun.udp.outcome, parsed.udp.outcome);
  EXPECT_EQ(begun.udp.ipv6, parsed.udp.ipv6);
  EXPECT_EQ(begun.udp.l3_offset, parsed.udp.l3_offset);
  EXPECT_EQ(begun.udp.l4_offset, parsed.udp.l4_offset);
  EXPECT_EQ(begun.udp.end, parsed.udp.end);
  return edit;
}

// Random packets with options, tags, with or without a UDP checksum, through up to 12 switches that mark and route
// them. Expects correct checksums after each step, no checksum if there was none, and at the end the packet with its
// mark and a valid ICRC.
TEST(IntEdit, push_and_strip_restore_any_packet) {
  Rng rng{8};
  for (int round = 0; round < 3000; ++round) {
    const auto table = opcode_table();
    const Opcode opcode = table[rng.below(table.size())].opcode;
    const Packet packet =
        test::random_packet(rng, opcode, rng.chance(0.5), static_cast<unsigned>(rng.below(3)), rng.below(40));
    const ByteVector before = encode_packet(packet);
    RoomyFrame frame(before, 1024);
    IntSource s = source(rng.chance(0.5) ? static_cast<uint16_t>(rng.next()) : uint16_t{0});
    s.domain_instructions =
        rng.chance(0.5) ? int_domain_instruction::kCompactHop : int_domain_instruction::kFullHop;
    s.hops = static_cast<uint8_t>(rng.below(16));
    ASSERT_EQ(begin(frame.front, s), IntEdit::kDone);
    uint32_t pushed = 0;
    for (uint64_t i = rng.below(9); i > 0; --i) {
      const IntEdit edit = push(frame.front, example_report(static_cast<uint32_t>(i)), kTelemetryDomain,
                                rng.chance(0.9) ? kMtu : 100);
      ASSERT_TRUE(edit == IntEdit::kDone || edit == IntEdit::kHopsExceeded || edit == IntEdit::kMtuExceeded);
      if (edit == IntEdit::kDone) ++pushed;
      expect_right_checksums(frame.front);
      const UdpLocation where = find_udp(frame.front.head(), frame.front.length);
      const auto& udp = *reinterpret_cast<const UdpHeader*>(frame.front.data + where.l4_offset);
      ASSERT_EQ(udp.checksum.get() == 0, packet.udp_checksum == 0);
    }
    const IntView view = view_of(frame.front);
    ASSERT_TRUE(view.accepted());
    ASSERT_EQ(view.hop_count, pushed);
    ASSERT_LE(pushed, s.hops);
    for (uint32_t i = 0; i < pushed; ++i) ASSERT_TRUE(view.hop(i, kTelemetryDomain));
    mark_congestion(frame.front.data, frame.front.length);
    strip_int(frame.front, view);
    ByteVector wanted = before;
    mark_congestion(wanted.data(), static_cast<uint32_t>(wanted.size()));
    ASSERT_EQ(hex_text(frame.bytes()), hex_text(wanted));
    const ByteVector after = frame.bytes();
    const FrameView read = test::parse(after);
    ASSERT_EQ(read.kind, FrameKind::kRoce);
    ASSERT_EQ(compute_icrc(read), packet.icrc);
  }
}

// A checksum of 0xffff is that of the sum 0. The update must not change it to 0, "no checksum".
TEST(IntEdit, push_and_strip_preserve_every_udp_checksum) {
  Rng rng{9};
  for (const bool ipv6 : {false, true}) {
    const Packet packet = test::random_packet(rng, Opcode::kRcSendOnly, ipv6, 0, 8);
    const ByteVector bytes = encode_packet(packet);
    const uint32_t at = find_udp(bytes, static_cast<uint32_t>(bytes.size())).l4_offset + 6;
    for (uint32_t checksum = 0; checksum <= 0xffff; ++checksum) {
      ByteVector before = bytes;
      before[at] = static_cast<uint8_t>(checksum >> 8);
      before[at + 1] = static_cast<uint8_t>(checksum);
      RoomyFrame frame(before);
      ASSERT_EQ(begin_int(frame.front, source(), kMtu), IntEdit::kDone);
      ASSERT_EQ(push(frame.front, example_report()), IntEdit::kDone);
      const bool none = frame.front.data[at] == 0 && frame.front.data[at + 1] == 0;
      ASSERT_EQ(none, checksum == 0);
      strip_int(frame.front, view_of(frame.front));
      ASSERT_EQ(frame.bytes(), before) << checksum;
    }
  }
}

// A damaged packet stays damaged: one wrong bit in the payload, and one in the IPv4 header.
TEST(IntEdit, damaged_packet_remains_detectable) {
  Packet packet = make_packet(Opcode::kRcSendOnly).with_payload(ByteVector(20, 7));
  packet.udp_checksum = 1;
  const ByteVector right = encode_packet(packet.finish());
  for (const size_t at : {size_t{14 + 8}, right.size() - 10}) {
    ByteVector damaged = right;
    damaged[at] ^= 0x10;
    RoomyFrame frame(damaged);
    ASSERT_EQ(begin_int(frame.front, source(), kMtu), IntEdit::kDone);
    ASSERT_EQ(push(frame.front, example_report()), IntEdit::kDone);
    const UdpLocation where = find_udp(frame.front.head(), frame.front.length);
    const bool in_header = at < where.l4_offset;
    const uint16_t header =
        plain_sum({frame.front.data + where.l3_offset, frame.front.data + where.l4_offset});
    EXPECT_EQ(header != 0xffff, in_header);
    strip_int(frame.front, view_of(frame.front));
    EXPECT_EQ(frame.bytes(), damaged);
    if (in_header) continue;
    EXPECT_NE(compute_udp_checksum(test::parse(damaged)), packet.udp_checksum);
  }
}

}  // namespace
}  // namespace roci
