// Selection of the key flow of a congested queue.
#include "switch/cnp/key_flow.hpp"

#include <gtest/gtest.h>

#include <map>

#include "switch/qcn/cnm_bench.hpp"

namespace roci {
namespace {

using test::ip;

KeyFlow flow(uint32_t i) {
  KeyFlow out;
  out.flow = {IpAddress::from_v4(0x0a000000 + i), ip("10.1.0.1"), Qpn{100 + i}};
  return out;
}
const auto kAny = [](const KeyFlow&) { return true; };

TEST(CnpPacer, is_due_at_the_onset_of_congestion_and_then_once_per_sample) {
  CnpPacer pacer({.threshold = 10_KiB, .sample = 100_KiB}, 1);
  EXPECT_FALSE(pacer.is_due(1000, 10'239));
  EXPECT_TRUE(pacer.is_due(1000, 10'240));
  uint64_t due = 0;
  constexpr uint64_t kFrames = 200'000;
  for (uint64_t i = 0; i < kFrames; ++i) due += pacer.is_due(1000, 20'000);
  EXPECT_NEAR(static_cast<double>(due), kFrames * 1000 / 102'400.0, 20);
  while (pacer.is_due(1000, 20'000)) {
  }
  EXPECT_FALSE(pacer.is_due(1000, 0));
  EXPECT_TRUE(pacer.is_due(1000, 20'000)) << "congested again";
}

TEST(FlowSketch, few_flows_are_counted_exactly) {
  FlowSketch sketch(1'000'000);
  std::map<uint32_t, uint64_t> exact;
  Rng rng(3);
  for (int i = 0; i < 900; ++i) {
    const auto which = static_cast<uint32_t>(rng.below(FlowSketch::kFlows));
    const auto bytes = static_cast<uint32_t>(rng.between(64, 1024));
    sketch.add(flow(which), bytes);
    exact[which] += bytes;
  }
  uint32_t heaviest = 0;
  for (const auto& [which, bytes] : exact) {
    EXPECT_EQ(sketch.bytes_of(flow(which).flow), bytes);
    if (bytes > exact[heaviest]) heaviest = which;
  }
  ASSERT_NE(sketch.heaviest(kAny), nullptr);
  EXPECT_EQ(sketch.heaviest(kAny)->flow, flow(heaviest).flow);
}

// 10,000 small flows and three heavy ones of 5 % each. Expects the heavy ones, in order.
TEST(FlowSketch, finds_heavy_flows_among_many_small_flows) {
  FlowSketch sketch(2'000'000);
  Rng rng(5);
  for (int i = 0; i < 100'000; ++i) {
    const double u = rng.unit();
    const uint32_t which = u < 0.08   ? 1
                           : u < 0.14 ? 2
                           : u < 0.19 ? 3
                                      : 100 + static_cast<uint32_t>(rng.below(10'000));
    sketch.add(flow(which), 1000);
  }
  std::vector<RoceFlow> told;
  for (int i = 0; i < 3; ++i) {
    const KeyFlow* found = sketch.heaviest(
        [&](const KeyFlow& f) { return std::find(told.begin(), told.end(), f.flow) == told.end(); });
    ASSERT_NE(found, nullptr);
    told.push_back(found->flow);
  }
  EXPECT_EQ(told, (std::vector{flow(1).flow, flow(2).flow, flow(3).flow}));
}

TEST(FlowSketch, discounts_old_traffic) {
  FlowSketch sketch(100'000);
  for (int i = 0; i < 1000; ++i) sketch.add(flow(1), 1000);
  for (int i = 0; i < 1000; ++i) sketch.add(flow(2), 1000);
  EXPECT_EQ(sketch.heaviest(kAny)->flow, flow(2).flow);
  EXPECT_LT(sketch.bytes_of(flow(1).flow), 1000U);
}

TEST(FlowSketch, heaviest_returns_none_without_an_eligible_flow) {
  FlowSketch sketch(1000);
  EXPECT_EQ(sketch.heaviest(kAny), nullptr);
  sketch.add(flow(1), 100);
  EXPECT_EQ(sketch.heaviest([](const KeyFlow&) { return false; }), nullptr);
}

}  // namespace
}  // namespace roci
