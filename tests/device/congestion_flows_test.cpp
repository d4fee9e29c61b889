// Flow numbers that identify queue pairs in congestion notifications, without a device.
#include "engine/congestion/congestion_flows.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "base/rng.hpp"

namespace roci {
namespace {

SentFlow sent_flow(uint32_t n) {
  return {IpAddress::from_v4(0x0a000001), IpAddress::from_v4(0x0a000002 + n % 7), Qpn{n},
          static_cast<uint16_t>(0xc000 + n % 3)};
}

TEST(CongestionFlows, allocates_each_number_once_and_reuses_them_in_release_order) {
  CongestionFlows flows(true, 40'000, 1);
  std::vector<bool> given(65536);
  for (uint32_t i = 0; i < CongestionFlows::kMax; ++i) {
    const uint16_t flow = flows.enter(Qpn{i + 2}, nullptr);
    ASSERT_NE(flow, 0);
    ASSERT_FALSE(given[flow]);
    given[flow] = true;
    EXPECT_EQ(flows.find(flow), Qpn{i + 2});
  }
  EXPECT_EQ(flows.size(), CongestionFlows::kMax);
  EXPECT_EQ(flows.enter(Qpn{2}, nullptr), 0);
  for (const uint16_t flow : {uint16_t{77}, uint16_t{5}, uint16_t{65535}}) {
    flows.leave(flow);
    EXPECT_EQ(flows.find(flow), std::nullopt);
  }
  for (const uint16_t flow : {uint16_t{77}, uint16_t{5}, uint16_t{65535}})
    EXPECT_EQ(flows.enter(Qpn{9}, nullptr), flow);
}

TEST(CongestionFlows, allocates_no_flow_if_disabled) {
  CongestionFlows flows(false, 0, 1);
  EXPECT_FALSE(flows.enabled());
  EXPECT_EQ(flows.enter(Qpn{2}, nullptr), 0);
  EXPECT_EQ(flows.find(uint16_t{1}), std::nullopt);
  EXPECT_EQ(flows.find(sent_flow(1)), std::nullopt);
  EXPECT_EQ(flows.size(), 0U);
}

TEST(CongestionFlows, clears_the_record_of_a_reused_number) {
  CongestionFlows flows(true, 65'534, 1);
  const uint16_t flow = flows.enter(Qpn{2}, nullptr);
  EXPECT_EQ(flow, 65535);
  flows.requests(flow) = {.notices = 7, .latest = CongestionNotice{}};
  flows.leave(flow);
  while (flows.enter(Qpn{3}, nullptr) != flow) {
  }
  EXPECT_EQ(flows.requests(flow).notices, 0U);
  EXPECT_FALSE(flows.requests(flow).latest);
}

TEST(CongestionFlows, matches_a_naive_model) {
  CongestionFlows flows(true, 3, 0x1234);
  Rng rng{5};
  std::map<uint32_t, std::pair<uint16_t, Qpn>> model;  // by the number in its sent_flow()
  for (int i = 0; i < 200'000; ++i) {
    const auto n = static_cast<uint32_t>(rng.below(3000));
    const auto known = model.find(n);
    if (rng.chance(0.5)) {
      const auto found = flows.find(sent_flow(n));
      ASSERT_EQ(found.has_value(), known != model.end());
      if (found) {
        ASSERT_EQ(*found, known->second.second);
        ASSERT_EQ(flows.find(known->second.first), found);
      }
    } else if (known == model.end()) {
      const Qpn qp{static_cast<uint32_t>(rng.between(2, 0xfffffe))};
      const SentFlow sent = sent_flow(n);
      const uint16_t flow = flows.enter(qp, &sent);
      ASSERT_NE(flow, 0);
      model[n] = {flow, qp};
    } else {
      flows.leave(known->second.first);
      model.erase(known);
    }
    ASSERT_EQ(flows.size(), model.size());
  }
}

}  // namespace
}  // namespace roci
