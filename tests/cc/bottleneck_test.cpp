// Algorithms with many flows on one link: results of the papers and drafts as far as one link reproduces them, and no
// starvation.
#include "cc/bottleneck.hpp"

namespace roci::test {
namespace {

constexpr uint64_t kMilli = 1'000'000;

// Payload rate at 100 Gb/s, in Gb/s: 1000 of 1048 bytes, in whole nanoseconds per packet.
constexpr double kAll = 95.2;

BottleneckQueue without_marks() { return {.mark_from = 1e12, .mark_all = 2e12, .drop_not_ect = 1e12}; }
BottleneckQueue step_at(double bytes) {
  return {.mark_from = bytes, .mark_all = bytes + 1, .drop_not_ect = 1e12};
}

TEST(Bottleneck, single_flow_reaches_its_target_utilization) {
  for (const char* name : {"ldcp", "dctcp", "swift"}) {
    const auto result = Bottleneck(name, 1).run(2 * kMilli);
    EXPECT_GT(result.goodput, kAll - 0.1) << name;
    EXPECT_EQ(result.drops, 0U) << name;
  }
  EXPECT_NEAR(Bottleneck("hpcc", 1).run(2 * kMilli).goodput, kAll * 0.95, 0.5);
}

TEST(Bottleneck, ldcp_drops_only_at_the_start_and_keeps_a_short_queue) {  // L1, L26, L27
  const auto result = Bottleneck("ldcp", 16).run(4 * kMilli);
  EXPECT_GT(result.goodput, kAll - 0.5);
  EXPECT_NEAR(result.mean_queue, 15'000, 3000);
  EXPECT_LT(result.most_queue, 70'000);
  EXPECT_GT(result.fairness, 0.95);
  EXPECT_GT(result.drops, 500U);
  EXPECT_EQ(result.late_drops, 0U);
}

// With the base round-trip time 1024 flows keep one packet each in the queue, for any gamma. With the measured one it
// drains.
TEST(Bottleneck, ldcp_drains_queue_of_1024_flows_with_measured_rtt) {  // A1, L7
  const auto measured = Bottleneck("ldcp", 1024).run(10 * kMilli);
  EXPECT_LT(measured.mean_queue, 150'000);
  EXPECT_GT(measured.goodput, 85);
  EXPECT_GT(measured.fairness, 0.9);
  EXPECT_EQ(measured.late_drops, 0U);
  const auto base = Bottleneck("ldcp", 1024, {{"subpacket_rtt", 0}}).run(10 * kMilli);
  EXPECT_GT(base.mean_queue, 900'000);
}

TEST(Bottleneck, ldcp_is_unfair_if_its_rules_differ_at_one_packet) {  // A2
  const auto apart = Bottleneck("ldcp", 64, {{"alpha", 1}, {"gamma", 0.0625}}).run(20 * kMilli);
  EXPECT_LT(apart.fairness, 0.6);
  const auto together = Bottleneck("ldcp", 64, {{"alpha", 0.0625}, {"gamma", 0.0625}}).run(20 * kMilli);
  EXPECT_GT(together.fairness, 0.95);
}

TEST(Bottleneck, ldcp_jitter_raises_goodput_and_shortens_queue) {
  const auto jittered = Bottleneck("ldcp", 512).run(10 * kMilli);
  const auto even = Bottleneck("ldcp", 512, {{"jitter", 0}}).run(10 * kMilli);
  EXPECT_GT(jittered.goodput, even.goodput + 5);
  EXPECT_LT(jittered.mean_queue, even.mean_queue);
}

// Figure 13 of the paper: a reaction to each ACK without a reference window loses throughput and keeps a queue.
TEST(Bottleneck, hpcc_reference_window_keeps_goodput_and_a_short_queue) {  // H1, H22
  const auto run = [](double update) {
    return Bottleneck("hpcc", 16, {{"w_ai", 80}, {"update", update}}, without_marks()).run(2 * kMilli);
  };
  const auto combined = run(0), per_ack = run(1), per_round = run(2);
  EXPECT_GT(combined.goodput, 0.93 * kAll);
  EXPECT_LT(combined.mean_queue, 5000);
  EXPECT_GT(combined.fairness, 0.98);
  EXPECT_LT(per_ack.goodput, 0.8 * kAll);
  EXPECT_GT(per_ack.mean_queue, 50'000);
  EXPECT_GT(per_round.goodput, 0.93 * kAll);
}

TEST(Bottleneck, hpcc_utilization_follows_eta) {  // H15
  const auto low = Bottleneck("hpcc", 4, {{"eta", 0.8}, {"w_ai", 20}}, without_marks()).run(2 * kMilli);
  const auto high = Bottleneck("hpcc", 4, {{"eta", 0.98}, {"w_ai", 20}}, without_marks()).run(2 * kMilli);
  EXPECT_NEAR(low.goodput, 0.8 * kAll, 2.5);
  EXPECT_NEAR(high.goodput, 0.98 * kAll, 2.5);
  EXPECT_LE(low.mean_queue, high.mean_queue);
}

// Theorem 1: in equilibrium the queue is the sum of all beta; theorem 3: shares are equal.
TEST(Bottleneck, powertcp_queue_is_sum_of_additive_increases) {
  for (const char* name : {"powertcp", "theta_powertcp"}) {
    for (const double beta : {250.0, 1000.0}) {
      const auto result = Bottleneck(name, 16, {{"beta", beta}}, without_marks()).run(4 * kMilli);
      EXPECT_GT(result.goodput, 0.965 * kAll) << name << ' ' << beta;
      EXPECT_NEAR(result.mean_queue, 16 * beta, 16 * beta * 0.25 + 1500) << name << ' ' << beta;
      EXPECT_GT(result.fairness, 0.98) << name << ' ' << beta;
    }
  }
}

// Why equation 7 uses the window at the transmission of the acknowledged packet, and why the current has a minimum: with
// one stored window per round trip, and without a minimum, windows oscillate.
TEST(Bottleneck, powertcp_oscillates_with_one_stored_window_and_unlimited_current) {
  const auto run = [](double stored, double least) {
    return Bottleneck("powertcp", 16, {{"beta", 250}, {"stored_windows", stored}, {"least_current", least}},
                      without_marks())
        .run(4 * kMilli);
  };
  const auto usual = run(4, 0.5), as_simulator = run(0, 0);
  EXPECT_LT(usual.mean_queue, 8000);
  EXPECT_GT(usual.fairness, 0.99);
  EXPECT_GT(as_simulator.mean_queue, 5 * usual.mean_queue);
  EXPECT_LT(as_simulator.fairness, 0.96);
}

TEST(Bottleneck, powertcp_target_below_1_leaves_bandwidth_unused_instead_of_a_queue) {
  const auto result =
      Bottleneck("powertcp", 4, {{"target", 0.9}, {"beta", 20}}, without_marks()).run(2 * kMilli);
  EXPECT_NEAR(result.goodput, 0.9 * kAll, 2.5);
  EXPECT_LT(result.mean_queue, 2500);
}

TEST(Bottleneck, dctcp_keeps_queue_near_marking_threshold) {
  const auto result = Bottleneck("dctcp", 16, {}, step_at(68'000)).run(10 * kMilli);
  EXPECT_GT(result.goodput, kAll - 0.1);
  EXPECT_NEAR(result.mean_queue, 60'000, 12'000);
  EXPECT_GT(result.fairness, 0.95);
}

TEST(Bottleneck, swift_keeps_queue_near_its_target) {
  const auto result = Bottleneck("swift", 16, {}, without_marks()).run(4 * kMilli);
  EXPECT_GT(result.goodput, kAll - 0.1);
  EXPECT_NEAR(result.mean_queue, 48'000, 10'000);  // 45 KB with the same values in the reference's run
  EXPECT_GT(result.fairness, 0.98);
}

// 1024 windows of one round trip overflow the buffer. The minimum window with a round-trip time of 5 ms would take
// half a second.
TEST(Bottleneck, swift_remains_fair_after_an_incast) {
  const auto result = Bottleneck("swift", 1024, {}, without_marks()).run(40 * kMilli);
  EXPECT_GT(result.fairness, 0.9);
  EXPECT_GT(result.goodput, 80);
  EXPECT_EQ(result.late_drops, 0U);
}

TEST(Bottleneck, repeated_run_gives_identical_results) {
  for (const char* name : {"ldcp", "hpcc", "dctcp", "swift", "powertcp", "theta_powertcp"}) {
    const auto once = Bottleneck(name, 30).run(kMilli), again = Bottleneck(name, 30).run(kMilli);
    EXPECT_EQ(once.goodput, again.goodput) << name;
    EXPECT_EQ(once.mean_queue, again.mean_queue) << name;
  }
}

}  // namespace
}  // namespace roci::test
