#include "wire/roce/roce_peek.hpp"

#include <gtest/gtest.h>

#include "wire/headers/aeth.hpp"
#include "wire/int/telemetry_edit.hpp"
#include "wire/wire_test_support.hpp"

namespace roci {
namespace {

constexpr uint16_t kIntPort = 5000;

std::optional<RocePeek> glance(const ByteVector& frame, uint16_t int_port = 0) {
  return peek_roce(frame, static_cast<uint32_t>(frame.size()), int_port);
}

void expect_same(const RocePeek& seen, const Packet& packet, const OpcodeInfo& info) {
  EXPECT_EQ(seen.info, &info);
  EXPECT_EQ(seen.flow, (RoceFlow{packet.source, packet.destination, packet.bth.destination_qp}));
  EXPECT_EQ(seen.psn, packet.bth.psn);
  EXPECT_EQ(seen.pkey, packet.bth.pkey);
  EXPECT_EQ(seen.udp_source_port, packet.udp_source_port);
  std::optional<Qpn> says;
  if (packet.deth) {
    says = packet.deth->source_qp;
  } else if (packet.extensions) {
    says = packet.extensions->source_qp;
  }
  EXPECT_EQ(seen.source_qp, says) << info.name;
}

// Every opcode, IPv4 and IPv6, up to two tags, with all extension blocks: compared with the full decoder.
TEST(RocePeek, agrees_with_the_decoder) {
  Rng rng(1);
  for (const OpcodeInfo& info : opcode_table()) {
    for (int i = 0; i < 40; ++i) {
      Packet packet =
          test::random_packet(rng, info.opcode, rng.chance(0.5), static_cast<unsigned>(rng.below(3)),
                              info.payload == PayloadRule::kNone ? 0 : 64);
      packet.bth.version = 0;
      packet.finish();
      const ByteVector frame = encode_packet(packet);
      const auto decoded = decode_packet(frame);
      ASSERT_TRUE(decoded) << decoded.error().message;
      const auto seen = glance(frame);
      ASSERT_TRUE(seen) << info.name;
      expect_same(*seen, *decoded, info);
    }
  }
}

TEST(RocePeek, reads_packet_after_telemetry_headers) {
  const Packet packet =
      make_packet(Opcode::kRcWriteOnly).to(Qpn{0x123456}, Psn{77}).with_payload(ByteVector(64)).finish();
  test::RoomyFrame roomy(encode_packet(packet));
  ASSERT_EQ(begin_int(roomy.front,
                      {.port = kIntPort,
                       .domain = 1,
                       .domain_instructions = int_domain_instruction::kCompactHop,
                       .domain_flags = 0,
                       .hops = 5},
                      1500),
            IntEdit::kDone);
  const ByteVector frame = roomy.bytes();
  EXPECT_FALSE(glance(frame)) << "another UDP port";
  const auto seen = glance(frame, kIntPort);
  ASSERT_TRUE(seen);
  expect_same(*seen, packet, opcode_info(Opcode::kRcWriteOnly));
}

TEST(RocePeek, truncated_frames_are_rejected_without_reading_beyond_them) {
  ExtensionBlock block;
  block.source_qp = Qpn{9};
  Packet packet = make_packet(Opcode::kRcSendOnly).to(Qpn{0x11}, Psn{1}).with_extensions(block).finish();
  const ByteVector whole = encode_packet(packet);
  for (size_t length = 0; length < whole.size(); ++length) {
    const ByteVector cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length));
    // The rest may be in another segment: the parser returns the fields in `cut` and reads nothing beyond
    // (sanitizer).
    const auto head = peek_roce(cut, static_cast<uint32_t>(whole.size()));
    EXPECT_EQ(head.has_value(), length >= 14 + 20 + 8 + 12) << length;
    if (head) {
      EXPECT_EQ(head->source_qp.has_value(), length >= 14 + 20 + 8 + 12 + 8) << length;
    }
    EXPECT_FALSE(glance(cut)) << length;
  }
}

TEST(RocePeek, positive_rc_acknowledgments_are_recognized) {
  Rng rng(1);
  const auto is_acknowledgment = [](const ByteVector& frame) {
    return is_rc_acknowledgment(frame, static_cast<uint32_t>(frame.size()));
  };
  for (const OpcodeInfo& info : opcode_table()) {
    Packet packet =
        test::random_packet(rng, info.opcode, rng.chance(0.5), static_cast<unsigned>(rng.below(3)),
                            info.payload == PayloadRule::kNone ? 0 : 64);
    if (info.opcode != Opcode::kRcAcknowledge) {
      EXPECT_FALSE(is_acknowledgment(encode_packet(packet.finish()))) << info.name;
      continue;
    }
    for (unsigned syndrome = 0; syndrome < 256; ++syndrome) {
      packet.with_aeth(static_cast<uint8_t>(syndrome), Msn{}).finish();
      const bool expected = aeth_kind(static_cast<uint8_t>(syndrome)) == AethKind::kAck;
      EXPECT_EQ(is_acknowledgment(encode_packet(packet)), expected) << syndrome;
    }
  }
  const ByteVector whole = encode_packet(
      make_packet(Opcode::kRcAcknowledge).to(Qpn{1}, Psn{1}).with_aeth(kSyndromeAck, Msn{}).finish());
  for (size_t length = 0; length < whole.size(); ++length) {
    const ByteVector cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length));
    EXPECT_FALSE(is_acknowledgment(cut)) << length;
    EXPECT_EQ(is_rc_acknowledgment(cut, static_cast<uint32_t>(whole.size())), length >= 14 + 20 + 8 + 12 + 4);
  }
}

TEST(RocePeek, rejects_unknown_opcodes_and_versions) {
  Packet packet = make_packet(Opcode::kRcSendOnly).to(Qpn{0x11}, Psn{1}).finish();
  packet.bth.version = 1;
  EXPECT_FALSE(glance(encode_packet(packet)));
  packet.bth.version = 0;
  packet.bth.opcode = static_cast<Opcode>(0x5f);
  EXPECT_FALSE(glance(encode_packet(packet)));
}

TEST(RocePeek, invalid_block_gives_no_source_queue_pair) {
  Packet packet = make_packet(Opcode::kRcSendOnly).to(Qpn{0x11}, Psn{1});
  packet.bth.reserved7 = Bth::kExtensions;
  for (const char* block : {"20020001 00000118", "11020001 00000118", "10010001 00000118",
                            "10020002 00000118", "10020001 01000118"}) {
    packet.with_payload(test::from_hex(block)).finish();
    const auto seen = glance(encode_packet(packet));
    ASSERT_TRUE(seen);
    EXPECT_FALSE(seen->source_qp) << block;
  }
  packet.with_payload(test::from_hex("10020001 00000118")).finish();
  EXPECT_EQ(glance(encode_packet(packet))->source_qp, Qpn{0x118});
}

}  // namespace
}  // namespace roci
