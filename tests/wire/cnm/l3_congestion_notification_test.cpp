#include "wire/cnm/l3_congestion_notification.hpp"

#include <gtest/gtest.h>

#include "wire/roce/packet_fields.hpp"
#include "wire/wire_test_support.hpp"

namespace roci {
namespace {

using test::from_hex;
using test::RoomyFrame;

constexpr uint16_t kCnmPort = 49200;
const MacAddress kCongestedSwitch{{0x02, 0, 0, 0, 0, 0xaa}};
const SipKey kKey{1, 2, 3};

struct Message {
  RocePath path;
  FiveTuple flow;
  ByteVector msdu;
  Cnm cnm;  // its MSDU is `msdu`
  L3CnmTlvs tlvs;

  [[nodiscard]] ByteVector build() {
    cnm.msdu = msdu;
    ByteVector out(kMaxL3CnmFrame, 0xee);
    out.resize(build_l3_cnm(path, kCnmPort, flow, cnm, tlvs, out));
    out.shrink_to_fit();
    return out;
  }
};

// A message about a flow from 10.0.0.1 to 10.0.1.2, or from fd00::1 to fd00::2.
Message example(bool ipv6) {
  Message m;
  m.flow.source = *IpAddress::parse(ipv6 ? "fd00::1" : "10.0.0.1");
  m.flow.destination = *IpAddress::parse(ipv6 ? "fd00::2" : "10.0.1.2");
  m.flow.protocol = ipv6 ? 6 : kProtocolUdp;
  m.flow.source_port = ipv6 ? 5678 : 0xc123;
  m.flow.destination_port = ipv6 ? 21 : kRoceUdpPort;
  m.path.destination_mac = MacAddress{{0x02, 0, 0, 0, 0, 0x01}};
  m.path.source_mac = kCongestedSwitch;
  m.path.destination_ip = m.flow.source;
  m.path.source_ip = m.flow.destination;
  m.path.udp_source_port = 0xd000;
  m.path.traffic_class = 48 << 2;
  m.msdu = from_hex("0800 4500 0030 0001");
  m.cnm.feedback = 21;
  m.cnm.point = {kCongestedSwitch, Be16{0x0305}};
  m.cnm.queue_offset = 375;
  m.cnm.queue_delta = -156;
  m.cnm.priority = 3;
  m.cnm.destination = MacAddress{{0x02, 0, 0, 0, 0, 0x02}};
  return m;
}

L3CnmTlvs all_but_auth() {
  L3CnmTlvs tlvs;
  tlvs.available_bandwidth = 1000;
  tlvs.rate_change = -10;
  tlvs.port = IntHopValues{0x12345, 0x678, 0x0a0b0c0d, 0x200, ScaledCount::of(10'000), ScaledCount::of(6000)};
  tlvs.ecn = EcnCounts{100, 3};
  return tlvs;
}

constexpr const char* kPdu = "0015 0200000000aa0305 0177 ff64 6000 020000000002 0008 0800 4500 0030 0001";

// The expected checksums were computed by a separate program.
TEST(L3Cnm, frame_over_ipv4_matches_documentation) {
  Message m = example(false);
  const ByteVector frame = m.build();
  EXPECT_EQ(hex_text(frame), hex_text(from_hex("020000000001 0200000000aa 0800"
                                               "45c0004c 00004000 401124df 0a000102 0a000001"
                                               "d000 c030 0038 9990"
                                               "11 00 11 00 0a000001 0a000102 c123 12b7" +
                                               std::string(kPdu))));
}

TEST(L3Cnm, frame_over_ipv6_with_tlvs_matches_documentation) {
  Message m = example(true);
  m.tlvs = all_but_auth();
  m.path.flow_label = 0x12345;
  m.path.vlan_id = 5;
  m.path.priority = 6;
  const ByteVector frame = m.build();
  EXPECT_EQ(
      hex_text(frame),
      hex_text(from_hex("020000000001 0200000000aa 8100 c005 86dd"
                        "6c012345 0078 1140 fd000000000000000000000000000002 fd000000000000000000000000000001"
                        "d000 c030 0078 c23d"
                        "11 c0 06 00 fd000000000000000000000000000001 fd000000000000000000000000000002"
                        "162e 0015" +
                        std::string(kPdu) +
                        "0104 000003e8 0204 fffffff6 0310 12345678 0a0b0c0d 00000200 29c4 1bb8"
                        "0408 00000064 00000003")));
}

void expect_read(Message& m) {
  const ByteVector frame = m.build();
  const L3CnmView view = parse_l3_cnm(frame, kCnmPort);
  ASSERT_EQ(view.outcome, L3CnmOutcome::kAccepted) << l3_cnm_outcome_name(view.outcome);
  EXPECT_EQ(view.pdu, CnmOutcome::kAccepted);
  EXPECT_EQ(view.flow, m.flow);
  EXPECT_EQ(view.tlvs, m.tlvs);
  EXPECT_EQ(view.cnm.feedback, m.cnm.feedback);
  EXPECT_EQ(view.cnm.queue_delta, m.cnm.queue_delta);
  EXPECT_EQ(hex_text(view.cnm.msdu), hex_text(m.msdu));
  // The PDU has the same format as in a layer 2 frame.
  ByteVector pdu(m.cnm.pdu_bytes());
  write_cnm(m.cnm, pdu.data());
  EXPECT_EQ(hex_text(std::span(frame).subspan(view.pdu_offset, pdu.size())), hex_text(pdu));
}

TEST(L3Cnm, round_trip_preserves_any_message) {
  Rng rng{5};
  for (int round = 0; round < 2000; ++round) {
    Message m = example(rng.chance(0.5));
    m.path.vlan_id = rng.chance(0.5) ? 5 : 0;
    m.flow.protocol = static_cast<uint8_t>(rng.next());
    m.flow.source_port = static_cast<uint16_t>(rng.next());
    m.cnm.feedback = static_cast<uint8_t>(rng.below(64));
    m.cnm.queue_delta = static_cast<int16_t>(rng.next());
    m.msdu = test::random_bytes(rng, rng.below(kMaxCnmMsdu + 1));
    if (rng.chance(0.5)) m.tlvs.available_bandwidth = static_cast<uint32_t>(rng.next());
    if (rng.chance(0.5)) m.tlvs.rate_change = static_cast<int32_t>(rng.next());
    if (rng.chance(0.5)) m.tlvs.port = all_but_auth().port;
    if (rng.chance(0.5)) m.tlvs.ecn = EcnCounts{static_cast<uint32_t>(rng.next()), 7};
    if (rng.chance(0.5)) m.tlvs.auth_sequence = static_cast<uint32_t>(rng.next());
    expect_read(m);
  }
}

TEST(L3Cnm, longest_frame_equals_declared_maximum) {
  Message m = example(true);
  m.path.vlan_id = 1;
  m.msdu.resize(kMaxCnmMsdu);
  m.tlvs = all_but_auth();
  m.tlvs.auth_sequence = 1;
  EXPECT_EQ(m.build().size(), kMaxL3CnmFrame);
}

// The ToR switch of the sender knows MAC, VLAN and flow from its table. Expects the CNM that the congested switch
// would send in the sender's layer 2 network.
TEST(L3Cnm, is_converted_in_place_to_layer_2_cnm) {
  for (const bool ipv6 : {false, true}) {
    Message m = example(ipv6);
    m.tlvs = all_but_auth();
    RoomyFrame frame(m.build(), 0);
    const L3CnmView view = parse_l3_cnm(frame.front.head(), kCnmPort);
    ASSERT_TRUE(view.accepted());
    CnmLink link{MacAddress{{0x02, 0, 0, 0, 0, 0x55}}, kCongestedSwitch, {}};
    link.tags.vlan[0] = {kEtherTypeVlan, 0xc064};
    link.tags.vlan_count = 1;
    link.tags.flow = 0xa878;
    const uint32_t behind = frame.front.headroom + frame.front.length;
    ASSERT_TRUE(to_l2_cnm(frame.front, view, link));
    EXPECT_EQ(hex_text(frame.bytes()),
              hex_text(from_hex("020000000055 0200000000aa 8100 c064 22e9 a878 22e7" + std::string(kPdu))));
    EXPECT_EQ(frame.front.headroom + frame.front.length, behind - all_but_auth().bytes());
    const ParsedCnmFrame read = parse_cnm_frame(frame.bytes());
    EXPECT_EQ(read.outcome, CnmOutcome::kAccepted);
    EXPECT_EQ(read.link.tags, link.tags);
  }
  Message m = example(false);
  RoomyFrame frame(m.build());
  const L3CnmView view = parse_l3_cnm(frame.front.head(), kCnmPort);
  --frame.front.head_length;
  EXPECT_FALSE(to_l2_cnm(frame.front, view, {})) << "in two pieces";
}

L3CnmOutcome l3_cnm_outcome(ByteVector frame) {
  frame.shrink_to_fit();
  return parse_l3_cnm(frame, kCnmPort).outcome;
}

// Replaces one byte of the UDP payload, without a UDP checksum.
L3CnmOutcome outcome_with(ByteVector frame, size_t at, uint8_t value) {
  frame[14 + 20 + 6] = frame[14 + 20 + 7] = 0;
  frame[14 + 20 + 8 + at] = value;
  return l3_cnm_outcome(frame);
}

TEST(L3Cnm, invalid_encapsulation_has_a_specific_outcome) {
  const ByteVector right = example(false).build();
  ASSERT_EQ(l3_cnm_outcome(right), L3CnmOutcome::kAccepted);
  for (size_t length = 0; length < right.size(); ++length)
    EXPECT_EQ(l3_cnm_outcome({right.begin(), right.begin() + static_cast<ptrdiff_t>(length)}),
              L3CnmOutcome::kTruncated);
  EXPECT_EQ(parse_l3_cnm(right, kCnmPort + 1).outcome, L3CnmOutcome::kNotL3Cnm);
  const auto with = [&right](size_t at, uint8_t value) {
    ByteVector frame = right;
    frame[at] = value;
    return l3_cnm_outcome(frame);
  };
  EXPECT_EQ(with(13, 0x06), L3CnmOutcome::kNotL3Cnm);
  EXPECT_EQ(with(23, 6), L3CnmOutcome::kNotL3Cnm);
  EXPECT_EQ(with(14, 0x44), L3CnmOutcome::kBadIp);
  EXPECT_EQ(with(20, 0x60), L3CnmOutcome::kBadIp) << "a fragment";
  EXPECT_EQ(with(39, 0x37), L3CnmOutcome::kBadIp) << "UDP length";
  EXPECT_EQ(with(41, right[41] ^ 1U), L3CnmOutcome::kBadChecksum);
  EXPECT_EQ(with(right.size() - 1, 0x77), L3CnmOutcome::kBadChecksum);
  ByteVector padded = right;
  padded.resize(200);
  EXPECT_EQ(l3_cnm_outcome(padded), L3CnmOutcome::kAccepted);
  ByteVector v6 = example(true).build();
  v6[14 + 40 + 6] = v6[14 + 40 + 7] = 0;
  EXPECT_EQ(l3_cnm_outcome(v6), L3CnmOutcome::kBadChecksum) << "none over IPv6";
}

// IPv4-mapped addresses would name an IPv4 flow.
TEST(L3Cnm, rejects_flow_with_ipv4_mapped_addresses) {
  for (const size_t address : {size_t{4}, size_t{20}}) {
    ByteVector frame = example(true).build();
    const size_t flow = 14 + 40 + 8;
    const auto mapped = IpAddress::from_v4(0x0a000001).bytes;
    std::copy(mapped.begin(), mapped.end(), frame.begin() + static_cast<ptrdiff_t>(flow + address));
    // Recomputes the UDP checksum.
    frame[flow - 2] = frame[flow - 1] = 0;
    FrameView view;
    view.frame = frame.data();
    view.ipv6 = true;
    view.l3_offset = 14;
    view.l4_offset = 14 + 40;
    view.icrc_offset = static_cast<uint32_t>(frame.size()) - kIcrcBytes;
    const uint16_t checksum = compute_udp_checksum(view);
    frame[flow - 2] = static_cast<uint8_t>(checksum >> 8);
    frame[flow - 1] = static_cast<uint8_t>(checksum);
    EXPECT_EQ(l3_cnm_outcome(frame), L3CnmOutcome::kBadFlow);
  }
}

TEST(L3Cnm, invalid_contents_have_a_specific_outcome) {
  const ByteVector right = example(false).build();
  const auto with = [&right](size_t at, uint8_t value) { return outcome_with(right, at, value); };
  EXPECT_EQ(with(0, 0x11), L3CnmOutcome::kAccepted) << "no checksum over IPv4";
  EXPECT_EQ(with(0, 0x21), L3CnmOutcome::kBadVersion);
  EXPECT_EQ(with(0, 0x12), L3CnmOutcome::kBadVersion) << "type";
  EXPECT_EQ(with(1, 0x01), L3CnmOutcome::kReservedBits);
  EXPECT_EQ(with(3, 0x01), L3CnmOutcome::kReservedBits);
  EXPECT_EQ(with(1, 0x80), L3CnmOutcome::kNotToSender) << "IPv6 in IPv4";
  EXPECT_EQ(with(7, 0x02), L3CnmOutcome::kNotToSender);
  EXPECT_EQ(with(16, 0x10), L3CnmOutcome::kBadPdu) << "its version";
  EXPECT_EQ(with(16 + 23, 9), L3CnmOutcome::kBadPdu) << "its MSDU beyond the end";
  EXPECT_EQ(with(16 + 23, 7), L3CnmOutcome::kTrailingBytes);
  EXPECT_EQ(with(1, 0x40), L3CnmOutcome::kNoTlvs);
  for (unsigned i = 0; i < kL3CnmOutcomeCount; ++i)
    EXPECT_FALSE(l3_cnm_outcome_name(static_cast<L3CnmOutcome>(i)).empty());
}

// A message whose UDP payload is `length` bytes. The rest is Ethernet padding.
L3CnmOutcome outcome_shortened(uint32_t length) {
  ByteVector frame = example(false).build();
  frame[14 + 20 + 6] = frame[14 + 20 + 7] = 0;
  frame[17] = static_cast<uint8_t>(28 + length);
  frame[39] = static_cast<uint8_t>(8 + length);
  return l3_cnm_outcome(frame);
}

TEST(L3Cnm, rejects_lengths_shorter_than_its_contents) {
  for (uint32_t length = 0; length < 16; ++length)
    EXPECT_EQ(outcome_shortened(length), L3CnmOutcome::kTooShort) << length;
  for (uint32_t length = 16; length < 48; ++length)
    EXPECT_EQ(outcome_shortened(length), L3CnmOutcome::kBadPdu) << length;
  EXPECT_EQ(outcome_shortened(48), L3CnmOutcome::kAccepted);
}

// The message with these bytes instead of the MSDU and TLVs.
L3CnmOutcome outcome_with_tlvs(const char* tlvs) {
  Message m = example(false);
  const ByteVector bytes = from_hex(tlvs);
  m.msdu = bytes;
  ByteVector frame = m.build();
  constexpr size_t kPayloadAt = 14 + 20 + 8;
  frame[kPayloadAt + 16 + 23] = 0;  // MSDU length 0: its bytes are TLVs
  return outcome_with(frame, 1, L3CnmHeader::kTlvs);
}

TEST(L3Cnm, validates_tlvs) {
  EXPECT_EQ(outcome_with_tlvs("0104 00000001"), L3CnmOutcome::kAccepted);
  EXPECT_EQ(outcome_with_tlvs("0104 00000001 0204 00000001"), L3CnmOutcome::kAccepted);
  EXPECT_EQ(outcome_with_tlvs("0204 00000001 0104 00000001"), L3CnmOutcome::kAccepted) << "in any order";
  EXPECT_EQ(outcome_with_tlvs("7703 010203 0104 00000001 0000"), L3CnmOutcome::kAccepted) << "unknown ones";
  EXPECT_EQ(outcome_with_tlvs("01"), L3CnmOutcome::kTlvBeyondPacket);
  EXPECT_EQ(outcome_with_tlvs("0104 000000"), L3CnmOutcome::kTlvBeyondPacket);
  EXPECT_EQ(outcome_with_tlvs("7701"), L3CnmOutcome::kTlvBeyondPacket);
  EXPECT_EQ(outcome_with_tlvs("0103 000000"), L3CnmOutcome::kBadTlvLength);
  EXPECT_EQ(outcome_with_tlvs("0100"), L3CnmOutcome::kBadTlvLength);
  EXPECT_EQ(outcome_with_tlvs("0308 0000000000000000"), L3CnmOutcome::kBadTlvLength);
  EXPECT_EQ(outcome_with_tlvs("0104 00000001 0104 00000001"), L3CnmOutcome::kRepeatedTlv);
  EXPECT_EQ(outcome_with_tlvs("050c 00000001 0000000000000000"), L3CnmOutcome::kAccepted);
  EXPECT_EQ(outcome_with_tlvs("050c 00000001 0000000000000000 0104 00000001"), L3CnmOutcome::kAuthNotLast);
}

// Signed, then changed with a corrected UDP checksum. Expects that verification fails.
TEST(L3Cnm, signed_message_is_verified_only_if_unchanged) {
  for (const bool ipv6 : {false, true}) {
    Message m = example(ipv6);
    m.tlvs = all_but_auth();
    m.tlvs.auth_sequence = 42;
    ByteVector frame = m.build();
    EXPECT_FALSE(verify_l3_cnm(frame, parse_l3_cnm(frame, kCnmPort), kKey)) << "not signed yet";
    ASSERT_TRUE(sign_l3_cnm(frame, kCnmPort, kKey));
    const L3CnmView view = parse_l3_cnm(frame, kCnmPort);
    ASSERT_TRUE(view.accepted());
    EXPECT_EQ(view.tlvs.auth_sequence, 42);
    EXPECT_TRUE(verify_l3_cnm(frame, view, kKey));
    EXPECT_FALSE(verify_l3_cnm(frame, view, SipKey{}));
    const size_t addresses = ipv6 ? 14 + 8 : 14 + 12;
    for (size_t at = addresses; at < frame.size(); ++at) {
      if (at >= view.udp.l4_offset && at < view.udp.l4_offset + sizeof(UdpHeader)) continue;
      ByteVector changed = frame;
      changed[at] ^= 0x04;
      EXPECT_FALSE(verify_l3_cnm(changed, view, kKey)) << at;
    }
  }
  Message m = example(false);
  ByteVector frame = m.build();
  EXPECT_FALSE(sign_l3_cnm(frame, kCnmPort, kKey)) << "no AUTH";
  EXPECT_FALSE(verify_l3_cnm(frame, parse_l3_cnm(frame, kCnmPort), kKey));
}

}  // namespace
}  // namespace roci
