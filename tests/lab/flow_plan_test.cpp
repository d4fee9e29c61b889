#include "lab/traffic/flow_plan.hpp"

#include <gtest/gtest.h>

#include <set>

#include "lab/scenario/scenario.hpp"
#include "support/must.hpp"

namespace roci::lab {
namespace {

using test::must;

Scenario scenario_of(const std::string& traffic, uint32_t hosts = 16, const std::string& duration = "20ms") {
  return must(parse_scenario("name: x\nduration: " + duration + "\ntopology: {kind: star, hosts: " +
                                 std::to_string(hosts) + ", link: {rate: 25Gbps}}\ntraffic:\n  - " + traffic,
                             "x.yaml"));
}

TEST(SizeDistribution, draws_sizes_from_its_distribution) {
  const SizeDistribution made = must(SizeDistribution::parse("0 0\n1000 50  # half\n\n9000 100\n", "d"));
  EXPECT_DOUBLE_EQ(made.mean(), 0.5 * 500 + 0.5 * 5000);
  EXPECT_DOUBLE_EQ(made.at(0.25), 500);
  EXPECT_DOUBLE_EQ(made.at(0.75), 5000);
  EXPECT_EQ(made.largest(), 9000U);
  Rng rng{7};
  double sum = 0;
  for (int i = 0; i < 100'000; ++i) sum += static_cast<double>(made.draw(rng));
  EXPECT_NEAR(sum / 100'000, made.mean(), 0.02 * made.mean());
}

TEST(SizeDistribution, error_names_invalid_line) {
  const auto error = [](const std::string& text) {
    const auto read = SizeDistribution::parse(text, "d");
    return read ? std::string("none") : read.error().message;
  };
  EXPECT_EQ(error(""), "d: contains no sizes");
  EXPECT_EQ(error("0 0\n5 x\n"), "d:2: '5 x' is not a size in bytes and a percentage");
  EXPECT_EQ(error("0 0\n10 60\n9 100\n"), "d:3: '9 100' is below the previous line");
  EXPECT_EQ(error("0 0\n10 60\n"), "d: the last line does not reach 100 percent");
  EXPECT_EQ(error("0 0\n10 101\n"),
            "d:2: '10 101' is out of range; sizes up to 1e12 bytes and 0 to 100 percent are allowed");
}

TEST(FlowPlan, poisson_arrivals_offer_configured_load) {
  const Scenario scenario =
      scenario_of("{pattern: random, to: all, size: 10KB, arrivals: poisson, load: 0.4}");
  const TrafficPlan plan = must(plan_traffic(scenario));
  double bytes = 0;
  std::set<uint32_t> receivers;
  for (const FlowPlan& flow : plan.flows) {
    ASSERT_NE(flow.from, flow.to);
    ASSERT_LT(flow.start, 20ms);
    receivers.insert(flow.to);
    bytes += static_cast<double>(flow.bytes);
  }
  EXPECT_NEAR(bytes * 8 / 0.02, 0.4 * 16 * 25e9, 0.03 * 0.4 * 16 * 25e9);
  EXPECT_EQ(receivers.size(), 16U);
  EXPECT_TRUE(std::ranges::is_sorted(plan.flows, {}, &FlowPlan::start));
}

TEST(FlowPlan, is_determined_by_seed) {
  Scenario scenario = scenario_of("{pattern: random, to: all, size: 10KB, arrivals: poisson, load: 0.4}");
  const auto starts = [&] {
    std::vector<Nanos> all;
    for (const FlowPlan& flow : must(plan_traffic(scenario)).flows) all.push_back(flow.start);
    return all;
  };
  const auto first = starts();
  EXPECT_EQ(first, starts());
  scenario.seed = 2;
  EXPECT_NE(first, starts());
}

TEST(FlowPlan, permutation_has_no_flow_to_its_own_sender) {
  Scenario scenario = scenario_of("{pattern: permutation, to: all, size: 1KB}", 7);
  for (scenario.seed = 1; scenario.seed < 200; ++scenario.seed) {
    const TrafficPlan plan = must(plan_traffic(scenario));
    std::set<uint32_t> receivers;
    for (const FlowPlan& flow : plan.flows) {
      ASSERT_NE(flow.from, flow.to) << "seed " << scenario.seed;
      receivers.insert(flow.to);
    }
    ASSERT_EQ(plan.flows.size(), 7U) << "seed " << scenario.seed;
    ASSERT_EQ(receivers.size(), 7U) << "seed " << scenario.seed;
  }
}

TEST(FlowPlan, permutation_draws_from_all_receivers) {
  Scenario scenario = scenario_of("{pattern: permutation, from: h0-h3, to: all, size: 1KB}");
  std::set<uint32_t> receivers;
  for (scenario.seed = 1; scenario.seed < 100; ++scenario.seed) {
    const TrafficPlan plan = must(plan_traffic(scenario));
    ASSERT_EQ(plan.flows.size(), 4U) << "seed " << scenario.seed;
    for (const FlowPlan& flow : plan.flows) {
      ASSERT_NE(flow.from, flow.to);
      receivers.insert(flow.to);
    }
  }
  EXPECT_EQ(receivers.size(), 16U);
}

TEST(FlowPlan, counts_hosts_with_traffic) {
  EXPECT_EQ(must(plan_traffic(scenario_of("{from: [h1, h2], to: h5, size: 1KB}"))).busy_hosts(), 3U);
  EXPECT_EQ(
      must(plan_traffic(scenario_of("{from: h1, to: h5, size: 1KB, arrivals: closed_loop}"))).busy_hosts(),
      2U);
}

TEST(FlowPlan, number_of_simultaneous_flows_is_limited) {
  const auto plan = plan_traffic(scenario_of("{pattern: all_to_all, to: all, flows: 1000000, size: 1KB}"));
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().message, "traffic 'traffic0' exceeds 20000000 flows");
}

TEST(FlowPlan, incast_starts_degree_flows_at_once) {
  const Scenario scenario = scenario_of(
      "{pattern: random, to: all, size: 50KB, arrivals: poisson, load: 0.02, degree: 8}", 16, "100ms");
  const TrafficPlan plan = must(plan_traffic(scenario));
  ASSERT_GT(plan.flows.size(), 8U);
  ASSERT_EQ(plan.flows.size() % 8, 0U);
  for (size_t i = 0; i < plan.flows.size(); i += 8) {
    std::set<uint32_t> senders;
    for (size_t j = i; j < i + 8; ++j) {
      EXPECT_EQ(plan.flows[j].start, plan.flows[i].start);
      EXPECT_EQ(plan.flows[j].to, plan.flows[i].to);
      senders.insert(plan.flows[j].from);
    }
    EXPECT_EQ(senders.size(), 8U);
    EXPECT_FALSE(senders.contains(plan.flows[i].to));
  }
}

}  // namespace
}  // namespace roci::lab
