#include "wire/roce/roce_cnp.hpp"

#include <gtest/gtest.h>

#include "wire/icrc/icrc.hpp"
#include "wire/roce/packet_fields.hpp"
#include "wire/wire_test_support.hpp"

namespace roci {
namespace {

RocePath path_to_sender(bool ipv6) {
  RocePath path;
  path.source_mac = MacAddress{{0x7c, 0xfe, 0x90, 0x64, 0x3b, 0x32}};
  path.destination_mac = MacAddress{{0xe4, 0x1d, 0x2d, 0xab, 0x2b, 0xc2}};
  path.source_ip = *IpAddress::parse(ipv6 ? "fd00::2" : "10.0.17.1");
  path.destination_ip = *IpAddress::parse(ipv6 ? "fd00::1" : "10.0.18.1");
  path.traffic_class = kFeedbackTrafficClass;
  path.udp_source_port = 0;
  return path;
}

// The bytes of a ConnectX-4 Lx (icrc_test.cpp has the complete frame), except for the IP identification and fields
// computed from it.
TEST(RoceCnp, matches_cnp_of_a_nic) {
  std::array<uint8_t, 74> frame{};
  ASSERT_EQ(build_cnp(path_to_sender(false), Qpn{0x118}, frame), frame.size());
  EXPECT_EQ(hex_text(std::span(frame).first(70)),
            hex_text(test::from_hex("e41d2dab2bc2 7cfe90643b32 0800 45c2003c00004000401102ee0a0011010a001201"
                                    "000012b700280000 8100ffff4000011800000000"
                                    "00000000000000000000000000000000")));
  const FrameView view = parse_frame(frame.data(), frame.size(), frame.size());
  ASSERT_EQ(view.kind, FrameKind::kRoce);
  EXPECT_EQ(stored_icrc(view), compute_icrc_in_order(view));
}

TEST(RoceCnp, equals_encoded_packet_with_same_fields) {
  for (const bool ipv6 : {false, true}) {
    RocePath path = path_to_sender(ipv6);
    path.vlan_id = 5;
    path.priority = 6;
    path.udp_source_port = 0xc0de;
    ByteVector frame(kMaxCnpFrame, 0xee);
    frame.resize(build_cnp(path, Qpn{0x123456}, frame, PKey{0x8001}));
    EXPECT_EQ(frame.size(), ipv6 ? kMaxCnpFrame : kMaxCnpFrame - 20);
    Packet wanted = make_packet(Opcode::kCnp, ipv6).to(Qpn{0x123456}, Psn{0});
    wanted.between(path.source_mac, path.source_ip, path.destination_mac, path.destination_ip)
        .with_vlan(6 << 13 | 5)
        .with_traffic_class(kFeedbackTrafficClass);
    wanted.bth.pkey = PKey{0x8001};
    wanted.udp_source_port = 0xc0de;
    const auto read = decode_packet(frame);
    ASSERT_TRUE(read) << read.error().message;
    wanted.finish();
    EXPECT_EQ(*read, wanted) << ::testing::PrintToString(packet_differences(*read, wanted));
  }
}

}  // namespace
}  // namespace roci
