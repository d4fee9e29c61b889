#include "wire/net/rewrite.hpp"

#include <gtest/gtest.h>

#include "wire/icrc/icrc.hpp"
#include "wire/roce/packet_fields.hpp"
#include "wire/wire_test_support.hpp"

namespace roci {
namespace {

// Marks packets. Expects CE if and only if the packet is ECN-capable, a correct checksum, no other change, and a
// valid ICRC.
TEST(CongestionMarking, sets_ce_only_on_ecn_capable_packets) {
  Rng rng{14};
  for (int i = 0; i < 2000; ++i) {
    const auto table = opcode_table();
    const Packet before = test::random_packet(rng, table[rng.below(table.size())].opcode, rng.chance(0.5),
                                              static_cast<unsigned>(rng.below(3)), rng.below(20));
    ByteVector bytes = encode_packet(before);
    const bool markable = before.ecn() == Ecn::kEct0 || before.ecn() == Ecn::kEct1;
    EXPECT_EQ(mark_congestion(bytes.data(), static_cast<uint32_t>(bytes.size())), markable);
    Packet wanted = before;
    if (markable) wanted.with_traffic_class(before.traffic_class() | 3);
    const auto after = decode_packet(bytes);
    ASSERT_TRUE(after) << after.error().message;
    wanted.finish();
    EXPECT_EQ(*after, wanted) << ::testing::PrintToString(packet_differences(*after, wanted));
    EXPECT_EQ(compute_icrc(test::parse(bytes)), before.icrc);
  }
}

TEST(CongestionMarking, leaves_non_ip_and_truncated_frames_unchanged) {
  const ByteVector whole = encode_packet(make_packet(Opcode::kRcSendOnly).with_traffic_class(2).finish());
  for (uint32_t length = 0; length < sizeof(EthernetHeader) + sizeof(Ipv4Header); ++length) {
    ByteVector cut(whole.begin(), whole.begin() + length);
    EXPECT_FALSE(mark_congestion(cut.data(), length)) << length;
  }
  ByteVector arp = whole;
  arp[13] = 0x06;
  const ByteVector before = arp;
  EXPECT_FALSE(mark_congestion(arp.data(), static_cast<uint32_t>(arp.size())));
  EXPECT_EQ(arp, before);
}

TEST(TtlDecrement, decrements_ttl_and_updates_checksum) {
  Rng rng{15};
  for (int i = 0; i < 2000; ++i) {
    Packet p = test::random_packet(rng, Opcode::kRcSendOnly, false, 0, 4);
    p.v4().options.clear();
    p.cn_flow.reset();
    p.v4().ttl = static_cast<uint8_t>(rng.between(1, 255));
    p.finish();
    ByteVector bytes = encode_packet(p);
    decrement_ttl(*reinterpret_cast<Ipv4Header*>(bytes.data() + sizeof(EthernetHeader)));
    const auto after = decode_packet(bytes);  // rejects a wrong checksum
    ASSERT_TRUE(after) << after.error().message;
    EXPECT_EQ(after->v4().ttl, p.v4().ttl - 1);
    EXPECT_EQ(compute_icrc(test::parse(bytes)), p.icrc);
  }
}

// RFC 1624 section 4: the example in which the older formula yields ffff instead of 0.
TEST(ChecksumUpdate, matches_example_of_rfc_1624) {
  EXPECT_EQ(updated_checksum(0xdd2f, 0x5555, 0x3285), 0x0000);
}

}  // namespace
}  // namespace roci
