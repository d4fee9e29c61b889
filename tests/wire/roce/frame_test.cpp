#include "wire/roce/frame.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>

#include "support/sanitizer.hpp"
#include "wire/headers/checksum.hpp"
#include "wire/icrc/icrc.hpp"
#include "wire/roce/packet_fields.hpp"
#include "wire/wire_test_support.hpp"

namespace roci {
namespace {

using test::from_hex;
using test::parse;
using ByteView = std::span<const uint8_t>;

// A copy that ends at the end of its allocation, so that AddressSanitizer detects a read beyond it.
struct Exact {
  explicit Exact(ByteView bytes)
      : data(std::make_unique<uint8_t[]>(bytes.size())), length(static_cast<uint32_t>(bytes.size())) {
    if (!bytes.empty()) std::memcpy(data.get(), bytes.data(), bytes.size());
  }
  std::unique_ptr<uint8_t[]> data;
  uint32_t length;
};

// Reads everything that a receiver may read of an accepted frame.
void read_everything(const Exact& frame) {
  const FrameView view = parse_frame(frame.data.get(), frame.length, frame.length, OpcodeRange::kWithPrivate);
  const auto decoded = decode_packet({frame.data.get(), frame.length});
  ASSERT_EQ(decoded.has_value(), view.kind == FrameKind::kRoce);
  if (!decoded) return;
  ASSERT_LE(view.icrc_offset + kIcrcBytes, frame.length);
  ASSERT_EQ(view.payload_offset + view.payload_length + view.pad, view.icrc_offset);
  ASSERT_EQ(stored_icrc(view), decoded->icrc);
  (void)compute_icrc(view);
  (void)compute_udp_checksum(view);
  const ByteVector again = encode_packet(*decoded);
  ASSERT_TRUE(std::equal(again.begin(), again.end(), frame.data.get(), frame.data.get() + frame.length));
  (void)packet_fields(*decoded);
}

// Compares is_between() with a comparison of address values: for the correct addresses and with each byte changed,
// for both IP versions.
TEST(FrameView, is_between_matches_only_its_two_addresses) {
  Rng rng{31};
  for (const bool ipv6 : {false, true}) {
    const ByteVector bytes = encode_packet(test::random_packet(rng, Opcode::kRcSendOnly, ipv6, 0, 8));
    const FrameView view = parse(bytes);
    ASSERT_EQ(view.kind, FrameKind::kRoce);
    EXPECT_TRUE(view.is_between(view.source_ip(), view.destination_ip()));
    for (size_t at = 0; at < 16; ++at) {
      IpAddress source = view.source_ip();
      IpAddress destination = view.destination_ip();
      source.bytes[at] ^= static_cast<uint8_t>(1 + rng.below(255));
      destination.bytes[at] ^= static_cast<uint8_t>(1 + rng.below(255));
      EXPECT_FALSE(view.is_between(source, view.destination_ip()));
      EXPECT_FALSE(view.is_between(view.source_ip(), destination));
    }
  }
}

TEST(FrameParser, truncated_frame_is_rejected_without_reading_beyond_it) {
  Rng rng{8};
  for (const OpcodeInfo& info : opcode_table()) {
    for (unsigned variant = 0; variant < 6; ++variant) {
      Packet p = test::random_packet(rng, info.opcode, variant >= 3, variant % 3, 6);
      p.trailing.clear();
      const ByteVector bytes = encode_packet(p);
      for (size_t length = 0; length < bytes.size(); ++length) {
        const Exact cut{ByteView(bytes).first(length)};
        EXPECT_EQ(parse_frame(cut.data.get(), cut.length, cut.length).kind, FrameKind::kTruncated)
            << info.name << " cut to " << length;
      }
      read_everything(Exact(bytes));
    }
  }
}

// The first segment of a chain may contain any part of the frame. The parser must not read beyond it.
TEST(FrameParser, headers_beyond_first_segment_are_reported_truncated) {
  Rng rng{9};
  const Packet p = test::random_packet(rng, Opcode::kRcWriteOnlyImm, false, 2, 64);
  const ByteVector bytes = encode_packet(p);
  const FrameView whole = parse(bytes);
  for (uint32_t head = 0; head <= bytes.size(); ++head) {
    const Exact first{ByteView(bytes).first(head)};
    const FrameView view = parse_frame(first.data.get(), head, static_cast<uint32_t>(bytes.size()));
    EXPECT_EQ(view.kind, head < whole.payload_offset ? FrameKind::kTruncated : FrameKind::kRoce) << head;
  }
}

TEST(FrameParser, randomly_changed_frames_are_parsed_safely) {
  Rng rng{10};
  unsigned accepted = 0;
  for (uint64_t round = 0; round < test::repetitions(30'000); ++round) {
    const auto table = opcode_table();
    const Packet p = test::random_packet(rng, table[rng.below(table.size())].opcode, rng.chance(0.5),
                                         static_cast<unsigned>(rng.below(3)), rng.below(40));
    ByteVector bytes = encode_packet(p);
    for (uint64_t changes = rng.between(1, 4); changes > 0; --changes) {
      // mostly in the headers, which contain lengths and types
      const size_t span = rng.chance(0.8) ? std::min<size_t>(bytes.size(), 70) : bytes.size();
      bytes[rng.below(span)] = static_cast<uint8_t>(rng.next());
    }
    if (rng.chance(0.3)) bytes.resize(rng.below(bytes.size() + 8));
    const Exact frame(bytes);
    read_everything(frame);
    if (HasFatalFailure()) FAIL() << "round " << round;
    if (parse_frame(frame.data.get(), frame.length, frame.length).kind == FrameKind::kRoce) ++accepted;
  }
  // The test is meaningful only if both outcomes are frequent.
  EXPECT_GT(accepted, test::repetitions(3000));
  EXPECT_LT(accepted, test::repetitions(27'000));
}

// Applies to hosts without an agreement, to switches, and to all callers that do not request private opcodes.
TEST(FrameParser, private_opcodes_are_unknown_unless_requested) {
  Rng rng{11};
  unsigned seen = 0;
  for (const OpcodeInfo& info : opcode_table()) {
    const ByteVector bytes = encode_packet(test::random_packet(rng, info.opcode, rng.chance(0.5), 1, 0));
    const auto length = static_cast<uint32_t>(bytes.size());
    const FrameView view = parse_frame(bytes.data(), length, length);
    EXPECT_EQ(view.kind, info.is_private() ? FrameKind::kUnknownOpcode : FrameKind::kRoce) << info.name;
    EXPECT_EQ(view.opcode, info.is_private() ? nullptr : &info) << info.name;
    EXPECT_EQ(parse_frame(bytes.data(), length, length, OpcodeRange::kWithPrivate).kind, FrameKind::kRoce);
    seen += info.is_private() ? 1 : 0;
  }
  EXPECT_EQ(seen, 5U);
}

// Without an agreement on extension blocks, the bit that announces a block is a reserved bit.
TEST(FrameParser, extension_block_is_part_of_the_payload) {
  Rng rng{12};
  const ExtensionBlock block = test::random_extensions(rng);
  const ByteVector bytes = encode_packet(make_packet(Opcode::kRcSendOnly).with_extensions(block).finish());
  const FrameView view = parse(bytes);
  EXPECT_EQ(view.kind, FrameKind::kRoce);
  EXPECT_EQ(view.payload_length, block.bytes());
  EXPECT_EQ(view.payload_offset, view.bth_offset + sizeof(Bth));
}

struct KindRow {
  const char* what;
  const char* hex;
  FrameKind kind;
};

TEST(FrameParser, classifies_frames_other_than_roce) {
  const std::string macs = "020000000002020000000001 ";
  const KindRow rows[] = {
      {"an ARP request", "0806 0001080006040001", FrameKind::kArp},
      {"an ARP request in a VLAN", "8100 0005 0806 0001080006040001", FrameKind::kArp},
      {"LLDP", "88cc 0207", FrameKind::kOther},
      {"a third tag", "88a8 0001 8100 0002 8100 0003 0800 4500", FrameKind::kOther},
      {"a cut tag", "8100 00", FrameKind::kTruncated},
      {"ICMP", "0800 4500001400000000400166e70a0000010a000002", FrameKind::kIpv4},
      {"version 5 under the IPv4 type", "0800 5500001400000000400156e70a0000010a000002", FrameKind::kBadIp},
      {"an IPv4 header length of 16", "0800 4400001400000000400167e70a0000010a000002", FrameKind::kBadIp},
      {"a total length below the header", "0800 4500001300000000400166e80a0000010a000002", FrameKind::kBadIp},
      {"a wrong IPv4 checksum", "0800 4500001400000000400166e60a0000010a000002", FrameKind::kBadIp},
      {"a later fragment", "0800 4500001400000001401166d60a0000010a000002", FrameKind::kFragment},
      {"UDP without room for its header", "0800 4500001400000000401166d70a0000010a000002",
       FrameKind::kBadUdp},
      {"an IPv6 fragment",
       "86dd 60000000 0008 2c 40 fd000000000000000000000000000001 fd000000000000000000000000000002"
       "1100000100000001",
       FrameKind::kFragment},
      {"ICMPv6",
       "86dd 60000000 0004 3a ff fd000000000000000000000000000001 fd000000000000000000000000000002 80000000",
       FrameKind::kIpv6},
      {"version 4 under the IPv6 type",
       "86dd 40000000 0000 3a ff fd000000000000000000000000000001"
       "fd000000000000000000000000000002",
       FrameKind::kBadIp},
      {"IPv6 UDP without room for its header",
       "86dd 60000000 0000 11 ff fd000000000000000000000000000001"
       "fd000000000000000000000000000002",
       FrameKind::kBadUdp},
  };
  for (const KindRow& row : rows) {
    const Exact frame(from_hex(macs + row.hex));
    const FrameView view = parse_frame(frame.data.get(), frame.length, frame.length);
    EXPECT_EQ(view.kind, row.kind) << row.what << ": " << frame_kind_name(view.kind);
  }
}

TEST(FrameParser, rejects_udp_length_that_differs_from_ip) {
  for (const bool ipv6 : {false, true}) {
    const ByteVector right =
        encode_packet(make_packet(Opcode::kRcSendOnly, ipv6).with_payload(ByteVector(8)).finish());
    const size_t length_at = parse(right).l4_offset + 5U;
    for (const int by : {-4, -1, 1, 4}) {
      ByteVector wrong = right;
      wrong[length_at] = static_cast<uint8_t>(wrong[length_at] + by);
      EXPECT_EQ(parse(wrong).kind, FrameKind::kBadUdp) << by;
    }
  }
}

TEST(FrameParser, ignores_bytes_after_the_ip_packet) {
  Packet p = make_packet(Opcode::kRcAcknowledge).finish();
  const uint32_t icrc_offset = parse(encode_packet(p)).icrc_offset;
  p.trailing = ByteVector(11, 0xee);
  const ByteVector bytes = encode_packet(p);
  const FrameView view = parse(bytes);
  ASSERT_EQ(view.kind, FrameKind::kRoce);
  EXPECT_EQ(view.icrc_offset, icrc_offset);
  EXPECT_EQ(compute_icrc(view), p.icrc);
}

TEST(FrameParser, frame_kind_names_are_unique) {
  for (unsigned a = 0; a < kFrameKindCount; ++a) {
    EXPECT_FALSE(frame_kind_name(static_cast<FrameKind>(a)).empty());
    for (unsigned b = 0; b < a; ++b) {
      EXPECT_NE(frame_kind_name(static_cast<FrameKind>(a)), frame_kind_name(static_cast<FrameKind>(b)));
    }
  }
}

TEST(Frame, accepts_only_ipv4_headers_with_correct_checksum) {
  Rng rng{19};
  int right = 0;
  for (int i = 0; i < 20'000; ++i) {
    Packet packet = make_packet(Opcode::kRcSendOnly);
    // Causes carries.
    if (rng.chance(0.5)) packet.source = packet.destination = IpAddress::from_v4(0xffffffff);
    packet.v4().id = static_cast<uint16_t>(rng.next());
    packet.v4().tos = static_cast<uint8_t>(rng.next());
    ByteVector bytes = encode_packet(packet.finish());
    uint8_t* ip = bytes.data() + sizeof(EthernetHeader);
    if (rng.chance(0.3)) ip[8 + rng.below(12)] ^= static_cast<uint8_t>(1U << rng.below(8));
    if (rng.chance(0.1)) ip[10] = ip[11] = static_cast<uint8_t>(rng.chance(0.5) ? 0xff : 0);
    const bool is_right = inet_checksum(ip, sizeof(Ipv4Header)) == 0;
    right += is_right ? 1 : 0;
    ASSERT_EQ(parse(bytes).kind != FrameKind::kBadIp, is_right);
  }
  EXPECT_GT(right, 10'000);
}

}  // namespace
}  // namespace roci
