#include "wire/roce/packet.hpp"

#include <gtest/gtest.h>

#include "support/sanitizer.hpp"
#include "wire/icrc/icrc.hpp"
#include "wire/roce/packet_fields.hpp"
#include "wire/wire_test_support.hpp"

namespace roci {
namespace {

using test::from_hex;
using test::parse;
using test::random_packet;

TEST(Packet, round_trip_preserves_every_opcode) {
  Rng rng{2};
  for (const OpcodeInfo& info : opcode_table()) {
    for (const bool ipv6 : {false, true}) {
      for (unsigned tags = 0; tags <= 2; ++tags) {
        for (const size_t length : test::payload_lengths(info)) {
          SCOPED_TRACE(std::string(info.name) + (ipv6 ? " IPv6" : " IPv4") + ", tags " +
                       std::to_string(tags) + ", payload " + std::to_string(length));
          const Packet packet = random_packet(rng, info.opcode, ipv6, tags, length);
          const ByteVector bytes = encode_packet(packet);

          const FrameView view = parse(bytes);
          ASSERT_EQ(view.kind, FrameKind::kRoce) << frame_kind_name(view.kind);
          EXPECT_EQ(view.opcode, &info);
          EXPECT_EQ(view.ipv6, ipv6);
          EXPECT_EQ(view.vlan_tags, tags);
          ASSERT_EQ(view.cn_tag, packet.cn_flow.has_value());
          if (view.cn_tag) {
            EXPECT_EQ(view.cn_flow(), *packet.cn_flow);
          }
          const uint32_t block = packet.extensions ? packet.extensions->bytes() : 0;
          EXPECT_EQ(view.payload_length, block + length);
          EXPECT_EQ(view.pad, pad_for(static_cast<uint32_t>(length)));
          EXPECT_EQ(view.payload_offset, view.bth_offset + info.header_bytes);
          EXPECT_EQ(view.icrc_offset + kIcrcBytes + packet.trailing.size(), bytes.size());
          EXPECT_EQ(view.psn(), packet.bth.psn);
          EXPECT_EQ(view.destination_qp(), packet.bth.destination_qp);
          EXPECT_EQ(view.source_ip(), packet.source);
          EXPECT_EQ(view.destination_ip(), packet.destination);
          EXPECT_EQ(view.traffic_class(), packet.traffic_class());
          EXPECT_EQ(view.vlan_id(), tags == 0 ? 0 : packet.vlan_tags.back().tci & 0xfff);
          EXPECT_EQ(stored_icrc(view), compute_icrc(view));
          if (packet.udp_checksum != 0) {
            EXPECT_EQ(compute_udp_checksum(view), packet.udp_checksum);
          }

          const auto decoded = decode_packet(bytes);
          ASSERT_TRUE(decoded) << decoded.error().message;
          EXPECT_EQ(*decoded, packet) << ::testing::PrintToString(packet_differences(*decoded, packet));
          EXPECT_EQ(encode_packet(*decoded), bytes);
        }
      }
    }
  }
}

// Packets with each extended header, with expected bytes written by hand, so that the encoder is not only compared
// with itself.
TEST(Packet, extended_headers_match_specification) {
  const auto from_bth = [](const Packet& packet) {
    const ByteVector bytes = encode_packet(packet);
    return ByteVector(bytes.begin() + parse(bytes).bth_offset, bytes.end() - kIcrcBytes);
  };
  Packet write = make_packet(Opcode::kRcWriteOnlyImm).to(Qpn{0x112233}, Psn{0xaabbcc}).requesting_ack();
  write.with_reth(0x0102030405060708, MemoryKey{0x11121314}, 0x21222324).with_imm(0x31323334);
  const ByteVector five{1, 2, 3, 4, 5};
  write.with_payload(five).finish();
  EXPECT_EQ(
      from_bth(write),
      from_hex("0b30ffff 00112233 80aabbcc 0102030405060708 11121314 21222324 31323334 0102030405 000000"));

  Packet swap = make_packet(Opcode::kRcCompareSwap).to(Qpn{1}, Psn{2});
  swap.atomic_eth =
      AtomicEthValues{0x0102030405060708, MemoryKey{0x11121314}, 0x2122232425262728, 0x3132333435363738};
  EXPECT_EQ(
      from_bth(swap.finish()),
      from_hex("1300ffff 00000001 00000002 0102030405060708 11121314 2122232425262728 3132333435363738"));

  Packet answer = make_packet(Opcode::kRcAtomicAcknowledge).with_aeth(0x1f, Msn{0x010203});
  answer.atomic_ack = 0x0102030405060708;
  EXPECT_EQ(from_bth(answer.finish()), from_hex("1200ffff 00000000 00000000 1f010203 0102030405060708"));

  Packet datagram = make_packet(Opcode::kUdSendOnlyImm).with_imm(0x01020304);
  datagram.deth = DethValues{QKey{0x80010000}, 0, Qpn{0x000001}};
  datagram.bth.solicited = true;
  EXPECT_EQ(from_bth(datagram.finish()), from_hex("6580ffff 00000000 00000000 80010000 00000001 01020304"));

  Packet invalidate = make_packet(Opcode::kRcSendOnlyInv);
  invalidate.ieth = MemoryKey{0x01020304};
  invalidate.bth.mig_req = true;
  EXPECT_EQ(from_bth(invalidate.finish()), from_hex("1740ffff 00000000 00000000 01020304"));

  EXPECT_EQ(from_bth(make_packet(Opcode::kCnp).to(Qpn{0x118}, Psn{0}).finish()),
            from_hex("8100ffff 40000118 00000000 00000000000000000000000000000000"));
}

TEST(Packet, finish_computes_checksums_of_a_known_packet) {
  // A UC packet with a UDP checksum computed over an ICRC of 0 (from the RoCE test of scapy).
  Packet p = make_packet(Opcode::kUcSendOnly).to(Qpn{211}, Psn{13571856});
  const MacAddress mac{{0x24, 0x8a, 0x07, 0xa8, 0xfa, 0x22}};
  p.between(mac, *IpAddress::parse("192.168.0.7"), mac, *IpAddress::parse("192.168.0.7"))
      .with_traffic_class(1);
  p.v4().id = 1144;
  p.bth.mig_req = true;
  p.with_payload(from_hex("4630818be28935d90e9a95505401be885e50"));
  p.udp_checksum = 1;  // any value but 0 requests a checksum
  p.finish();
  EXPECT_EQ(p.v4().checksum, 0xb4d5);
  EXPECT_EQ(p.udp_checksum, 0xaca2);
  const ByteVector bytes = encode_packet(p);
  EXPECT_EQ(hex_text(std::span(bytes).last(4)), "78f353f3");
}

TEST(Packet, finish_keeps_a_udp_checksum_of_zero_and_corrects_any_other) {
  for (const bool ipv6 : {false, true}) {
    Packet p = make_packet(Opcode::kRcSendOnly, ipv6).with_payload(ByteVector(7, 0x5a)).finish();
    EXPECT_EQ(p.udp_checksum, 0);
    p.udp_checksum = 1;
    p.finish();
    EXPECT_NE(p.udp_checksum, 0);
    EXPECT_NE(p.udp_checksum, 1);
    const ByteVector bytes = encode_packet(p);
    EXPECT_EQ(compute_udp_checksum(parse(bytes)), p.udp_checksum);
  }
}

// RFC 768: a computed checksum of 0 is sent as ffff, because 0 means no checksum.
TEST(Packet, computed_udp_checksum_is_never_zero) {
  Packet p = make_packet(Opcode::kRcSendOnly).with_payload(ByteVector(8, 0x5a)).finish();
  p.icrc = 0;
  const ByteVector first = encode_packet(p);
  const uint16_t missing = compute_udp_checksum(parse(first));
  // Two more bytes with that value change the sum to ffff and the checksum to 0.
  p.icrc = static_cast<uint32_t>(missing >> 8 | (missing & 0xff) << 8);
  const ByteVector second = encode_packet(p);
  EXPECT_EQ(compute_udp_checksum(parse(second)), 0xffff);
}

TEST(Packet, invalid_packets_can_be_built_and_are_rejected_by_reason) {
  const auto refused_as = [](const Packet& packet) { return parse(encode_packet(packet)).kind; };
  Packet unknown = make_packet(static_cast<Opcode>(0x1e));
  EXPECT_EQ(refused_as(unknown.finish()), FrameKind::kUnknownOpcode);
  Packet version = make_packet(Opcode::kRcSendOnly);
  version.bth.version = 1;
  EXPECT_EQ(refused_as(version.finish()), FrameKind::kBadVersion);
  Packet no_reth = make_packet(Opcode::kRcWriteOnly);
  no_reth.reth.reset();
  EXPECT_EQ(refused_as(no_reth.finish()), FrameKind::kBadLength);
  ByteVector pad_without_bytes = encode_packet(make_packet(Opcode::kRcAcknowledge).finish());
  pad_without_bytes[parse(pad_without_bytes).bth_offset + 1U] |= 0x10;
  EXPECT_EQ(parse(pad_without_bytes).kind, FrameKind::kBadLength);
  Packet checksum = make_packet(Opcode::kRcSendOnly).finish();
  checksum.v4().checksum ^= 1;
  EXPECT_EQ(refused_as(checksum), FrameKind::kBadIp);
  Packet fragment = make_packet(Opcode::kRcSendOnly);
  fragment.v4().flags_fragment = 0x2000;
  EXPECT_EQ(refused_as(fragment.finish()), FrameKind::kFragment);
  Packet other_port = make_packet(Opcode::kRcSendOnly, true);
  other_port.udp_destination_port = 4790;
  EXPECT_EQ(refused_as(other_port.finish()), FrameKind::kIpv6);

  const auto error = decode_packet(encode_packet(unknown));
  ASSERT_FALSE(error);
  EXPECT_NE(error.error().message.find("unknown opcode"), std::string::npos) << error.error().message;
}

TEST(PacketFields, cover_every_byte_of_the_frame_without_gap) {
  Rng rng{3};
  for (const OpcodeInfo& info : opcode_table()) {
    for (const bool ipv6 : {false, true}) {
      const Packet packet = random_packet(rng, info.opcode, ipv6, static_cast<unsigned>(rng.below(3)), 5);
      uint32_t end = 0;
      for (const PacketField& field : packet_fields(packet)) {
        // A field shares the bytes of the previous one or starts at its end.
        EXPECT_TRUE(field.offset == end || field.offset + field.length == end)
            << info.name << " " << field.name;
        end = field.offset + field.length;
      }
      EXPECT_EQ(end, encode_packet(packet).size()) << info.name;
    }
  }
}

// Changes each byte. Expects that a field at that byte is among the reported differences.
TEST(PacketFields, differences_name_the_field_of_a_changed_byte) {
  Rng rng{4};
  for (const OpcodeInfo& info : opcode_table()) {
    const Packet packet = random_packet(rng, info.opcode, rng.chance(0.5), 1, 5);
    const ByteVector bytes = encode_packet(packet);
    for (uint32_t at = 0; at < bytes.size();
         at += test::kSanitized ? static_cast<uint32_t>(rng.between(1, 7)) : 1U) {
      ByteVector changed = bytes;
      changed[at] ^= static_cast<uint8_t>(rng.between(1, 255));
      const auto decoded = decode_packet(changed);
      // with a different structure many fields differ
      const auto types = [](const Packet& p) { return p.extensions ? p.extensions->types() : 0; };
      if (!decoded || decoded->bth.opcode != packet.bth.opcode || decoded->pad.size() != packet.pad.size() ||
          types(*decoded) != types(packet))
        continue;
      const std::string names = field_names_at(packet, at);
      const auto differences = packet_differences(packet, *decoded);
      ASSERT_FALSE(differences.empty()) << info.name << " byte " << at;
      for (const std::string& difference : differences) {
        EXPECT_NE(names.find(difference.substr(0, difference.find(':'))), std::string::npos)
            << info.name << " byte " << at << ": " << difference << " is not among " << names;
      }
    }
  }
}

TEST(PacketFields, differences_contain_both_values_and_report_absence) {
  const Packet ack = make_packet(Opcode::kRcAcknowledge).to(Qpn{5}, Psn{7}).with_aeth(0x60, Msn{1}).finish();
  EXPECT_TRUE(packet_differences(ack, ack).empty());
  Packet other = ack;
  other.bth.psn = Psn{9};
  EXPECT_EQ(packet_differences(ack, other), std::vector<std::string>{"bth.psn: 7 and 9"});
  other = ack;
  other.payload = {0xab};
  const auto differences = packet_differences(ack, other);
  EXPECT_EQ(differences.back(), "data.payload: absent and ab");
  EXPECT_EQ(field_names_at(ack, 14 + 20 + 8 + 1), "bth.solicited, bth.mig_req, bth.pad_count, bth.version");
  EXPECT_EQ(field_names_at(ack, 5000), "beyond the frame");
}

}  // namespace
}  // namespace roci
