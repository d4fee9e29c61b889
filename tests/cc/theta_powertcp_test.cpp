// theta-PowerTCP: the control law of the paper (NSDI 2022, section 3.5 and algorithm 2).
#include <cstring>

#include "cc/driver.hpp"

namespace roci::test {
namespace {

// T is 4.2 us, HostBw * T is 52500 bytes, and beta of N = 100 is 525 bytes.
class ThetaPowerTcp : public Driver {
 public:
  explicit ThetaPowerTcp(const Values& values = {})
      : Driver(plugin("theta_powertcp"), values, usual_flow(), 1000) {
    event.next = 52 * kPayload;
  }

  // A sample of an ACK in the same round trip as the last one.
  const roci_cc_decision& sample(uint64_t after, uint32_t rtt_ns, uint64_t packet = kPacket) {
    event.now_ns += after;
    event.acked_packets = 1;
    event.acked_bytes = packet;
    return rtt(rtt_ns, ROCI_CC_ON_RTT | ROCI_CC_ON_ACK);
  }
  // A sample of an ACK for a byte sent after the last update.
  const roci_cc_decision& next_round(uint64_t after, uint32_t rtt_ns, uint64_t packet = kPacket) {
    event.acked = event.next + kPayload;
    event.next = event.acked + 51 * kPayload;
    return sample(after, rtt_ns, packet);
  }
  // The first sample is stored.
  void first(uint32_t rtt_ns = 4200) {
    sample(0, rtt_ns);
    EXPECT_EQ(reason_name(), "first_sample");
  }
  [[nodiscard]] double power() { return member(0); }
  [[nodiscard]] double window() { return member(1); }

 private:
  double member(size_t index) { return number_at(8 * index); }
};

TEST(ThetaPowerTcp, starts_at_line_rate_with_bandwidth_delay_product) {
  ThetaPowerTcp flow;
  EXPECT_EQ(flow.decision.window, 52'500U);
  EXPECT_EQ(flow.decision.rate, 100'000'000'000U);
  EXPECT_EQ(flow.state_name(), "blind");
}

// Computed by hand; each sample has half of the weight, since it is T / 2 after the last one.
TEST(ThetaPowerTcp, follows_example_of_control_law) {
  ThetaPowerTcp flow;
  flow.first();
  // Gradient (6300 - 4200) / 2100 = 1, power (1 + 1) * 6300 / 4200 = 3, smoothed (1 + 3) / 2.
  flow.next_round(2100, 6300);
  EXPECT_NEAR(flow.power(), 2, 1e-12);
  EXPECT_NEAR(flow.window(), 0.9 * (52'500 / 2.0 + 525) + 0.1 * 52'500, 1e-9);  // 29347.5
  EXPECT_EQ(flow.decision.window, 29'347U);
  EXPECT_EQ(flow.decision.rate, static_cast<uint64_t>(29'347.5 * 8e9 / 4200));
  EXPECT_EQ(flow.reason_name(), "reduced");
  EXPECT_EQ(flow.state_name(), "above_target");
  // The round trip does not change: power 1.5, smoothed 1.75.
  flow.next_round(2100, 6300);
  EXPECT_NEAR(flow.power(), 1.75, 1e-12);
  EXPECT_NEAR(flow.window(), 0.9 * (29'347.5 / 1.75 + 525) + 0.1 * 29'347.5, 1e-9);
  // Gradient -0.5: power 0.5 * 5250 / 4200 = 0.625, smoothed 1.1875.
  flow.next_round(2100, 5250);
  EXPECT_NEAR(flow.power(), 1.1875, 1e-12);
}

TEST(ThetaPowerTcp, updates_window_once_per_round_trip_and_power_with_each_sample) {  // T16 to T18
  ThetaPowerTcp flow;
  flow.first();
  for (int i = 1; i <= 10; ++i) {
    flow.event.acked += kPayload;
    flow.sample(200, 8400);
    EXPECT_EQ(flow.decision.window, 52'500U) << i;
    EXPECT_EQ(flow.reason_name(), "nothing") << i;
  }
  const double power = flow.power();
  EXPECT_GT(power, 1.4);
  flow.event.acked = 52 * kPayload;
  flow.sample(200, 8400);
  EXPECT_EQ(flow.decision.window, 52'500U) << "all bytes sent before";
  flow.event.acked += kPayload;
  flow.sample(200, 8400);
  EXPECT_LT(flow.decision.window, 40'000U);
}

TEST(ThetaPowerTcp, base_round_trip_time_adds_only_beta) {  // 3.5: no multiplicative increase
  ThetaPowerTcp flow({{"gamma", 1}});
  flow.call(ROCI_CC_ON_TIMEOUT);
  flow.first();
  for (int i = 1; i <= 5; ++i)
    EXPECT_NEAR((flow.next_round(4200, 4200), flow.window()), 26'250 + 525 * i, 1e-9);
  EXPECT_EQ(flow.reason_name(), "raised");
}

TEST(ThetaPowerTcp, rising_round_trip_time_reduces_window_more_than_constant_one) {
  ThetaPowerTcp rising, constant;
  rising.first(4200), constant.first(8400);
  for (ThetaPowerTcp* flow : {&rising, &constant}) flow->next_round(4200, 8400);
  EXPECT_NEAR(constant.power(), 2, 1e-12);
  EXPECT_NEAR(rising.power(), 4, 1e-12);
  EXPECT_LT(rising.window(), constant.window());
}

TEST(ThetaPowerTcp, sample_at_same_time_keeps_reference) {
  ThetaPowerTcp flow;
  flow.first();
  flow.event.acked = flow.event.next + kPayload;
  flow.sample(0, 8400);
  EXPECT_EQ(flow.power(), 1);
  EXPECT_EQ(flow.decision.window, 52'500U);
  flow.next_round(2100, 6300);
  EXPECT_NEAR(flow.power(), 2, 1e-12) << "compared with 4200 ns";
}

TEST(ThetaPowerTcp, interval_above_t_has_weight_of_t) {
  ThetaPowerTcp flow;
  flow.first();
  flow.next_round(42'000, 8400);  // gradient 0.1
  EXPECT_NEAR(flow.power(), 1.1 * 2, 1e-12);
}

TEST(ThetaPowerTcp, t_of_power_is_minimum_round_trip_time_if_shorter) {
  for (const bool measured : {true, false}) {
    for (const uint32_t least : {2100U, 5000U}) {
      ThetaPowerTcp flow({{"measured_t", measured ? 1 : 0}});
      flow.first(least);
      flow.call(ROCI_CC_ON_TIMEOUT);  // discards the reference of the gradient
      flow.first(8400);
      flow.next_round(8400, 8400);
      EXPECT_NEAR(flow.power(), measured && least == 2100 ? 4 : 2, 1e-12) << measured << ' ' << least;
    }
  }
}

// A small packet takes less time on the links.
TEST(ThetaPowerTcp, minimum_round_trip_time_of_small_packets_and_probes_does_not_count) {
  for (const bool probe : {false, true}) {
    ThetaPowerTcp flow;
    flow.first();
    if (probe) {
      flow.event.now_ns += 4200;
      flow.event.acked_packets = 1;
      flow.event.acked_bytes = kPacket;
      flow.rtt(4040, ROCI_CC_ON_RTT | ROCI_CC_ON_PROBE | ROCI_CC_ON_ACK);
    } else {
      flow.next_round(4200, 4040, 112);
    }
    EXPECT_EQ(flow.event.least_rtt_ns, 4040U);
    for (int i = 0; i < 400; ++i) flow.next_round(4200, 4200);
    EXPECT_NEAR(flow.power(), 1, 1e-9);
    EXPECT_GE(flow.window(), 52'000) << probe;
  }
}

TEST(ThetaPowerTcp, current_has_a_minimum) {
  for (const double least : {0.0, 0.5}) {
    ThetaPowerTcp flow({{"least_current", least}});
    flow.first(12'600);
    flow.next_round(4200, 4200);  // gradient -2
    EXPECT_NEAR(flow.power(), least, 1e-12);
    EXPECT_EQ(flow.decision.window, 52'500U) << "the maximum";
  }
}

TEST(ThetaPowerTcp, ignores_round_trip_time_of_0) {
  ThetaPowerTcp flow;
  flow.first();
  flow.event.acked = flow.event.next + kPayload;
  flow.event.now_ns += 4200;
  flow.event.rtt_ns = 0;
  flow.call(ROCI_CC_ON_RTT);
  EXPECT_EQ(flow.reason_name(), "implausible");
  EXPECT_EQ(flow.power(), 1);
}

TEST(ThetaPowerTcp, window_stays_between_minimum_rate_and_maximum_window) {
  ThetaPowerTcp flow({{"min_rate", 1e9}, {"beta", 1}});
  flow.first();
  for (int i = 0; i < 100; ++i) flow.next_round(4200, 4'000'000'000);
  EXPECT_EQ(flow.decision.window, 525U);  // 1 Gb/s for 4.2 us
  EXPECT_EQ(flow.decision.rate, 1'000'000'000U);
  for (int i = 0; i < 200; ++i) flow.next_round(8'000'000'000, 4200);
  EXPECT_LE(flow.decision.window, 52'500U);
  EXPECT_EQ(ThetaPowerTcp({{"max_window", 10'000}}).decision.window, 10'000U);
}

TEST(ThetaPowerTcp, halves_window_on_timeout_and_stores_next_sample) {
  ThetaPowerTcp flow;
  flow.first();
  flow.next_round(2100, 6300);
  const double before = flow.window();
  flow.call(ROCI_CC_ON_TIMEOUT);
  EXPECT_NEAR(flow.window(), before / 2, 1e-9);
  EXPECT_EQ(flow.reason_name(), "timeout");
  flow.next_round(2100, 6300);
  EXPECT_EQ(flow.reason_name(), "first_sample");
  EXPECT_NEAR(flow.window(), before / 2, 1e-9);
  EXPECT_EQ(flow.power(), 1);
}

}  // namespace
}  // namespace roci::test
