#include "roci-perf/connection/peer.hpp"

#include <gtest/gtest.h>

namespace roci::perf {
namespace {

TEST(Peer, parses_decimal_and_hexadecimal) {
  const auto peer =
      QueuePairAddress::parse("gid=::ffff:10.0.0.2,qpn=0x11,psn=7,rkey=0xffffffff,va=0x7f0012345678");
  ASSERT_TRUE(peer) << peer.error().message;
  EXPECT_EQ(peer->gid, Gid::parse("10.0.0.2").value());
  EXPECT_EQ(peer->qpn, 17U);
  EXPECT_EQ(peer->psn, 7U);
  EXPECT_EQ(peer->rkey, 0xffffffffU);
  EXPECT_EQ(peer->address, 0x7f0012345678U);
}

TEST(Peer, text_round_trip_preserves_address) {
  for (const char* gid : {"10.1.2.3", "fe80::2:3", "fd00::1"}) {
    const QueuePairAddress peer{Gid::parse(gid).value(), 0xabcdef, 0xffffff, 0x12345678,
                                0xffff'ffff'ffff'f000};
    const auto again = QueuePairAddress::parse(peer.to_string());
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ(*again, peer);
  }
}

TEST(Peer, errors_name_invalid_part) {
  const auto refusal = [](const char* text) {
    const auto peer = QueuePairAddress::parse(text);
    return peer ? std::string("(accepted)") : peer.error().message;
  };
  EXPECT_EQ(refusal("gid=10.0.0.2,qpn=0x1000000,psn=1"),
            "qpn is \"0x1000000\"; allowed are numbers from 0 to 0xffffff");
  EXPECT_NE(refusal("gid=10.0.0.2,qpn=1").find("psn is missing"), std::string::npos);
  EXPECT_NE(refusal("gid=10.0.0,qpn=1,psn=1").find("not an IP address"), std::string::npos);
  EXPECT_NE(refusal("gid=10.0.0.2,qpn=1,psn=1,lid=3").find("unknown part \"lid\""), std::string::npos);
  EXPECT_NE(refusal("gid=10.0.0.2,qpn=1,psn=1,psn=2").find("occurs more than once"), std::string::npos);
  EXPECT_NE(refusal("gid=10.0.0.2,qpn,psn=1").find("has no '='"), std::string::npos);
  EXPECT_NE(refusal("gid=10.0.0.2,qpn=0x,psn=1").find("qpn is \"0x\""), std::string::npos);
  EXPECT_NE(refusal("gid=10.0.0.2,qpn=1,psn=1,rkey=1").find("must be specified together"), std::string::npos);
  EXPECT_NE(refusal("").find("gid is missing"), std::string::npos);
}

TEST(Peer, gid_format_matches_perftest) {
  EXPECT_EQ(gid_in_decimal(Gid::parse("10.0.0.2").value()),
            "00:00:00:00:00:00:00:00:00:00:255:255:10:00:00:02");
}

}  // namespace
}  // namespace roci::perf
