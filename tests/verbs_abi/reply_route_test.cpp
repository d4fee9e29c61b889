// Tests of the reply route, which is derived from the 40 bytes before a datagram.
#include "verbs/calls/reply_route.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <initializer_list>

#include "verbs/compatibility/gid_type.hpp"

namespace roci {
namespace {

using Front = std::array<uint8_t, 40>;

// 10.0.0.1 to 10.0.0.2, ToS 0x68, TTL 63, in the last 20 bytes. The checksum was computed by hand.
Front ipv4(uint8_t rest) {
  Front front;
  front.fill(rest);
  const std::array<uint8_t, 20> header{0x45, 0x68, 0x01, 0x1c, 0x00, 0x00, 0x40, 0x00, 63, 17,
                                       0x26, 0x67, 10,   0,    0,    1,    10,   0,    0,  2};
  std::copy(header.begin(), header.end(), front.begin() + 20);
  return front;
}

// fe80::1 to fe80::2, traffic class 0x68, flow label 0x12345, hop limit 62.
Front ipv6(uint8_t next_header) {
  Front front{0x66, 0x81, 0x23, 0x45, 0x01, 0x00, next_header, 62, 0xfe, 0x80};
  front[23] = 1;
  front[24] = 0xfe;
  front[25] = 0x80;
  front[39] = 2;
  return front;
}

int read(const Front& front, ReplyRoute& route) {
  ibv_grh grh{};
  std::memcpy(&grh, front.data(), front.size());
  return read_reply_route(grh, route);
}

ibv_gid gid(std::initializer_list<uint8_t> start, std::initializer_list<uint8_t> end) {
  ibv_gid made{};
  std::copy(start.begin(), start.end(), made.raw);
  std::copy(end.begin(), end.end(), made.raw + sizeof made.raw - end.size());
  return made;
}

bool operator==(const ibv_gid& one, const ibv_gid& other) {
  return std::equal(one.raw, one.raw + 16, other.raw);
}

TEST(ReplyRoute, reads_ipv4_header_from_last_20_bytes) {
  for (const uint8_t rest : {uint8_t{0}, uint8_t{0xff}, uint8_t{0x60}}) {
    ReplyRoute route;
    ASSERT_EQ(read(ipv4(rest), route), 0) << int{rest};
    EXPECT_TRUE(route.own == gid({}, {0xff, 0xff, 10, 0, 0, 2}));
    EXPECT_TRUE(route.peer == gid({}, {0xff, 0xff, 10, 0, 0, 1}));
    EXPECT_EQ(route.own_type, kGidOfRoceV2);
    EXPECT_EQ(route.traffic_class, 0x68);
    EXPECT_EQ(route.hop_limit, 63);
    EXPECT_EQ(route.flow_label, 0u);
  }
}

TEST(ReplyRoute, reads_ipv6_header) {
  ReplyRoute route;
  ASSERT_EQ(read(ipv6(17), route), 0);
  EXPECT_TRUE(route.own == gid({0xfe, 0x80}, {2}));
  EXPECT_TRUE(route.peer == gid({0xfe, 0x80}, {1}));
  EXPECT_EQ(route.own_type, kGidOfRoceV2);
  EXPECT_EQ(route.traffic_class, 0x68);
  EXPECT_EQ(route.hop_limit, 62);
  EXPECT_EQ(route.flow_label, 0x12345u);
}

TEST(ReplyRoute, grh_selects_gid_of_roce_v1) {
  ReplyRoute route;
  ASSERT_EQ(read(ipv6(0x1b), route), 0);
  EXPECT_EQ(route.own_type, kGidOfRoceV1);
}

// The source address fe80::4500:1 looks like the start of an IPv4 header with a wrong checksum.
TEST(ReplyRoute, ipv6_address_resembling_ipv4_header_is_read_as_ipv6) {
  Front front = ipv6(17);
  front[20] = 0x45;
  ReplyRoute route;
  ASSERT_EQ(read(front, route), 0);
  EXPECT_EQ(route.flow_label, 0x12345u);
}

TEST(ReplyRoute, rejects_other_headers_and_multicast_destination) {
  ReplyRoute route;
  EXPECT_EQ(read(ipv6(6), route), EPROTONOSUPPORT);
  EXPECT_EQ(read(Front{}, route), EPROTONOSUPPORT);
  Front options = ipv4(0);
  options[20] = 0x46;
  EXPECT_EQ(read(options, route), EPROTONOSUPPORT);
  Front group = ipv4(0);
  group[36] = 239;
  EXPECT_EQ(read(group, route), EINVAL);
}

}  // namespace
}  // namespace roci
