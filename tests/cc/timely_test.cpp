// TIMELY: published values and rules.
#include <random>

#include "cc/driver.hpp"

namespace roci::test {
namespace {

// Values of the paper, and one update per sample.
Driver::Values timely_paper(const Driver::Values& more = {}) {
  Driver::Values values = {{"rescale", 0}, {"made_for", 0}, {"segment", 0}};
  for (const auto& [name, value] : more) values[name] = value;
  return values;
}

roci_cc_flow ten_gigabit() {
  roci_cc_flow flow = Driver::usual_flow();
  flow.line_rate = 10'000'000'000;
  return flow;
}

double gbit(const Driver& driver) { return static_cast<double>(driver.decision.rate) / 1e9; }

// Golden vector of the reference: alpha .875, beta .8, t_low 50 us, t_high 500 us, min_rtt 20 us, delta 10 Mb/s at 10
// Gb/s.
TEST(Timely, follows_paper_vector) {
  Driver driver(plugin("timely"), timely_paper(), ten_gigabit());
  EXPECT_EQ(driver.decision.rate, 10'000'000'000U);
  EXPECT_EQ(driver.state_name(), "start");
  const struct {
    uint32_t rtt_us;
    double rate;
    const char* reason;
  } steps[] = {
      {100, 10.000000, "added"},       {110, 6.500000, "gradient_cut"}, {130, 3.250000, "gradient_cut"},
      {120, 3.260000, "added"},        {110, 3.270000, "added"},        {100, 3.280000, "added"},
      {95, 3.290000, "added"},         {90, 3.340000, "hyper_added"},   {40, 3.350000, "below_t_low"},
      {600, 2.903333, "above_t_high"},
  };
  for (const auto& step : steps) {
    driver.rtt(step.rtt_us * 1000);
    EXPECT_NEAR(gbit(driver), step.rate, 5e-7) << step.rtt_us;
    EXPECT_EQ(driver.reason_name(), step.reason) << step.rtt_us;
  }
}

TEST(Timely, hyper_increase_adds_five_steps_until_rtt_grows) {
  Driver driver(plugin("timely"), timely_paper({{"start_rate", 1e9}}), ten_gigabit());
  EXPECT_NEAR(gbit(driver), 1, 1e-9);
  for (unsigned i = 0; i < 4; ++i) driver.rtt(100'000);
  EXPECT_NEAR(gbit(driver), 1.04, 1e-9);
  for (unsigned i = 0; i < 3; ++i) driver.rtt(100'000);
  EXPECT_NEAR(gbit(driver), 1.19, 1e-9);
  EXPECT_EQ(driver.state_name(), "hyper_increase");
  driver.rtt(101'000);  // gradient 0.875 / 20
  EXPECT_NEAR(gbit(driver), 1.19 * (1 - 0.8 * 0.04375), 1e-9);
  driver.rtt(90'000);
  EXPECT_EQ(driver.reason_name(), "added");
  for (unsigned i = 0; i < 4; ++i) driver.rtt(90'000);
  EXPECT_EQ(driver.reason_name(), "hyper_added");
  driver.rtt(600'000);
  driver.rtt(100'000);
  EXPECT_EQ(driver.reason_name(), "added") << "or was too long";
}

// HPCC's simulator counts every increase.
TEST(Timely, low_counts_permits_hyper_increases_below_t_low) {
  for (const double counts : {0.0, 1.0}) {
    Driver driver(plugin("timely"),
                  {{"start_rate", 1e9}, {"segment", 0}, {"rescale", 0}, {"low_counts", counts}});
    for (unsigned i = 0; i < 4; ++i) {
      driver.rtt(20'000);
      EXPECT_EQ(driver.reason_name(), "below_t_low") << i;
    }
    driver.rtt(30'000);
    EXPECT_EQ(driver.reason_name(), counts > 0 ? "hyper_added" : "below_t_low")
        << "growth is ignored below t_low";
  }
}

// A round trip is 52.5 packets of 1000 bytes. An update is due per 16384 bytes, which are 16 packets of 1048 bytes.
TEST(Timely, updates_once_per_segment) {
  Driver driver(plugin("timely"), {{"start_rate", 1e9}});
  const auto ack = [&](uint32_t nanos) {
    driver.event.acked_packets = 1;
    driver.event.acked_bytes = 1048;
    driver.rtt(nanos, ROCI_CC_ON_RTT | ROCI_CC_ON_ACK);
    return driver.reason_name();
  };
  EXPECT_EQ(ack(20'000), "added") << "the first sample counts";
  for (unsigned i = 1; i < 16; ++i) EXPECT_EQ(ack(80'000), "nothing") << i;
  EXPECT_EQ(ack(20'000), "added");
  driver.event.acked_bytes = 15'336;
  driver.call(ROCI_CC_ON_ACK);
  EXPECT_EQ(ack(20'000), "added") << "what was acknowledged without a sample counts too";
}

// HPCC's simulator: an update when a byte is acknowledged that was sent after the last update.
TEST(Timely, per_round_trip_updates_once_per_round_trip) {
  Driver driver(plugin("timely"), {{"start_rate", 1e9}, {"segment", 0}, {"per_round_trip", 1}});
  const auto ack = [&](uint64_t up_to, uint64_t next) {
    driver.event.acked = up_to;
    driver.event.next = next;
    driver.rtt(20'000, ROCI_CC_ON_RTT | ROCI_CC_ON_ACK);
    return driver.reason_name();
  };
  EXPECT_EQ(ack(1'000, 50'000), "added") << "the first sample counts";
  EXPECT_EQ(ack(2'000, 51'000), "nothing");
  EXPECT_EQ(ack(50'000, 99'000), "nothing") << "sent before the update";
  EXPECT_EQ(ack(51'000, 100'000), "added");
  EXPECT_EQ(ack(100'000, 150'000), "nothing");
  EXPECT_EQ(ack(101'000, 151'000), "added");

  roci_cc_flow flow = Driver::usual_flow();
  flow.provides = ROCI_CC_NEEDS_RTT;
  EXPECT_STREQ(plugin("timely").check(&flow, driver.parameters.data()),
               "per_round_trip requires acknowledgments");
}

TEST(Timely, counts_sent_bytes_without_acknowledgments) {
  roci_cc_flow flow = ten_gigabit();
  flow.provides = ROCI_CC_NEEDS_RTT;
  Driver driver(plugin("timely"), {{"start_rate", 1e9}}, flow);
  driver.rtt(20'000);
  driver.event.sent_bytes = 16'384;
  driver.rtt(20'000);
  EXPECT_EQ(driver.reason_name(), "added");
  driver.event.sent_bytes = 16'383;
  driver.rtt(20'000);
  EXPECT_EQ(driver.reason_name(), "nothing");
}

// 4.2 us instead of 20 us: t_low is 10.5 us, t_high 105 us, and a growth by 1 us a gradient of 0.875 / 4.2 = 0.20833.
TEST(Timely, scales_thresholds_by_base_rtt) {
  Driver driver(plugin("timely"), {{"segment", 0}, {"start_rate", 50e9}});
  driver.rtt(10'400);
  EXPECT_EQ(driver.reason_name(), "below_t_low");
  EXPECT_NEAR(gbit(driver), 50.1, 1e-9) << "10 Mb/s at 10 Gb/s are 100 at 100";
  driver.rtt(11'400);
  EXPECT_NEAR(gbit(driver), 50.1 * (1 - 0.8 * 0.875 / 4.2), 1e-6);
  const double before = gbit(driver);
  driver.rtt(210'000);
  EXPECT_EQ(driver.reason_name(), "above_t_high");
  EXPECT_NEAR(gbit(driver), before * (1 - 0.8 * 0.5), 1e-6);

  roci_cc_flow unknown = Driver::usual_flow();
  unknown.base_rtt_ns = 0;
  Driver plain(plugin("timely"), {{"segment", 0}}, unknown);
  plain.rtt(49'999);
  EXPECT_EQ(plain.reason_name(), "below_t_low") << "without it the numbers stand as they are";
}

TEST(Timely, minimum_factor_limits_a_cut) {
  for (const double least : {0.0, 0.5, 0.9}) {
    Driver driver(plugin("timely"), timely_paper({{"least_factor", least}}), ten_gigabit());
    driver.rtt(60'000);
    driver.rtt(4'000'000'000U);  // above t_high: 1 - 0.8 (1 - 0.5/4000) = 0.2001
    EXPECT_NEAR(gbit(driver), 10 * std::max(0.2001, least), 1e-6);
    driver.rtt(100'000);
    driver.rtt(499'000);  // a gradient of 17: reduces to the minimum rate
    EXPECT_GE(driver.decision.rate, 10'000'000U);
  }
}

TEST(Timely, ignores_rtt_sample_of_zero) {
  Driver driver(plugin("timely"), timely_paper());
  driver.rtt(0);
  EXPECT_EQ(driver.reason_name(), "implausible");
  EXPECT_EQ(driver.state_name(), "start");
}

TEST(Timely, requires_t_low_below_t_high) {
  Driver driver(plugin("timely"));
  driver.parameters[driver.index_of("t_high")] = 50e3;
  EXPECT_STREQ(plugin("timely").check(nullptr, driver.parameters.data()), "t_low must be below t_high");
}

class TimelyProperty : public testing::TestWithParam<uint64_t> {};

TEST_P(TimelyProperty, rate_stays_in_bounds_and_recovers_with_constant_rtt) {
  std::mt19937_64 rng(GetParam());
  Driver driver(plugin("timely"), {{"segment", 0}});
  for (unsigned i = 0; i < 200; ++i) {
    driver.rtt(static_cast<uint32_t>(rng() >> (32 + rng() % 31)));
    ASSERT_GE(driver.decision.rate, 10'000'000U);
    ASSERT_LE(driver.decision.rate, 100'000'000'000U);
  }
  for (unsigned i = 0; i < 40; ++i) driver.rtt(20'000);  // the average of the gradient decays
  uint64_t before = driver.decision.rate;
  for (unsigned i = 0; i < 300; ++i) {
    driver.rtt(20'000);
    ASSERT_GE(driver.decision.rate, before);
    before = driver.decision.rate;
  }
  EXPECT_EQ(before, 100'000'000'000U);
}

// Two flows with the same samples except for one: the flow with the longer round-trip time is not faster.
TEST_P(TimelyProperty, longer_rtt_sample_never_gives_a_higher_rate) {
  std::mt19937_64 rng(GetParam());
  for (unsigned round = 0; round < 50; ++round) {
    Driver shorter(plugin("timely"), {{"segment", 0}, {"start_rate", 50e9}});
    Driver longer(plugin("timely"), {{"segment", 0}, {"start_rate", 50e9}});
    for (unsigned i = 0; i < 5; ++i) {
      const auto nanos = static_cast<uint32_t>(rng() % 10'000 + 11'000);  // between t_low and t_high
      shorter.rtt(nanos);
      longer.rtt(nanos);
    }
    const auto nanos = static_cast<uint32_t>(rng() % 40'000 + 11'000);
    shorter.rtt(nanos);
    longer.rtt(nanos + static_cast<uint32_t>(rng() % 20'000));
    ASSERT_LE(longer.decision.rate, shorter.decision.rate);
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, TimelyProperty, testing::Range<uint64_t>(1, 11));

}  // namespace
}  // namespace roci::test
