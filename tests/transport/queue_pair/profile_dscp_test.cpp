// DSCP that a congestion control profile sets in all packets of its queue pairs.
#include <gtest/gtest.h>

#include <vector>

#include "congestion/profile.hpp"
#include "support/hosts/lone_host.hpp"

namespace roci::test {
namespace {

constexpr int kDscp = 26;

LoneHostOptions with_profile(int dscp) {
  LoneHostOptions options;
  options.control.profiles["bulk"] = {.algorithm = "dcqcn", .parameters = {}, .fallback = {}, .dscp = dscp};
  options.control.profile = "bulk";
  return options;
}

// DSCP of the packets that the host sends for a WRITE, and in response to one. Two packets. The pace of earlier packets
// permits them.
std::vector<int> dscps_of(LoneHost& host, int ahead) {
  host.now += 1ms;
  EXPECT_EQ(host.post(IBV_WR_RDMA_WRITE, 1, 16), 0);
  host.port().put(encode_packet(host.write(Opcode::kRcWriteOnly, ahead, 0, 16, 16).finish()));
  std::vector<int> dscps;
  for (const Packet& packet : host.work_for_packets()) dscps.push_back(packet.traffic_class() >> 2);
  return dscps;
}

TEST(ProfileDscp, requests_and_acknowledgments_carry_the_dscp_of_the_profile) {
  LoneHost host(with_profile(kDscp));
  EXPECT_EQ(dscps_of(host, 0), std::vector<int>(2, kDscp));
}

TEST(ProfileDscp, a_profile_without_dscp_keeps_that_of_the_path) {
  LoneHost host(with_profile(-1));
  EXPECT_EQ(dscps_of(host, 0), std::vector<int>(2, 0));
}

TEST(ProfileDscp, changes_with_the_profile_of_a_connected_queue_pair) {
  LoneHost host(with_profile(kDscp));
  EXPECT_EQ(dscps_of(host, 0), std::vector<int>(2, kDscp));
  ASSERT_TRUE(host.side.qp->set_congestion_control("dcqcn"));
  EXPECT_EQ(dscps_of(host, 1), std::vector<int>(2, 0));
  ASSERT_TRUE(host.side.qp->set_congestion_control("bulk"));
  EXPECT_EQ(dscps_of(host, 2), std::vector<int>(2, kDscp));
}

TEST(ProfileDscp, values_above_63_are_refused) {
  CongestionControlConfig config;
  config.profiles["bulk"] = {.algorithm = "dcqcn", .parameters = {}, .fallback = {}, .dscp = 64};
  const auto made = Profiles::create(config);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().message, "profiles: bulk: dscp must be 0 to 63, or -1 for that of the path");
}

}  // namespace
}  // namespace roci::test
