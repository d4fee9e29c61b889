// LDCP with probes and CNPs (draft-dai section 3.2): its rules, and behavior that the draft does not specify.
#include <random>

#include "cc/driver.hpp"

namespace roci::test {
namespace {

constexpr uint32_t kBase = 4200;
constexpr double kBdp = 100e9 * kBase / 1e9 / (8 * 1048);  // packets: 50.0954...

class LdcpPcc : public testing::Test {
 protected:
  // With the same cut for all CNPs.
  static Driver start(Driver::Values values = {}, const roci_cc_flow& flow = Driver::usual_flow()) {
    values.emplace("line_factor", 1);
    return Driver(plugin("ldcp_pcc"), values, flow);
  }
  // The flow sends data.
  static void answer(Driver& driver, uint32_t nanos = kBase) {
    driver.event.sent_bytes = 1048;
    driver.rtt(nanos, ROCI_CC_ON_RTT | ROCI_CC_ON_PROBE);
  }
  static bool asks(const Driver& driver) { return (driver.decision.requests & ROCI_CC_SEND_PROBE) != 0; }
  // The window that corresponds to the rate with a round-trip time of `nanos`.
  static double window(const Driver& driver, double nanos = kBase) {
    return static_cast<double>(driver.decision.rate) * nanos / 1e9 / (8 * 1048);
  }
};

// L54: a probe at the start of a flow. L3: start at line rate.
TEST_F(LdcpPcc, starts_at_line_rate_and_sends_probe) {
  const Driver driver = start();
  EXPECT_EQ(driver.decision.rate, 100'000'000'000U);
  EXPECT_EQ(driver.state_name(), "line_rate");
  EXPECT_TRUE(asks(driver));
  EXPECT_EQ(driver.decision.timer_ns[0], 300'000U);
  EXPECT_EQ(driver.decision.window, ROCI_CC_NO_LIMIT);
}

// L52: MD on every CNP. 50.0954 packets minus 0.5 are 49.5954; three CNPs at once: 48.0954.
TEST_F(LdcpPcc, subtracts_beta_per_cnp) {
  Driver driver = start();
  driver.cnp();
  EXPECT_NEAR(window(driver), kBdp - 0.5, 1e-6);
  EXPECT_EQ(driver.reason_name(), "cut");
  driver.cnp(3);
  EXPECT_NEAR(window(driver), kBdp - 2, 1e-6);
  EXPECT_EQ(driver.state_name(), "stable");
}

// L53: AI on probe responses. L54: the next probe follows at once.
TEST_F(LdcpPcc, adds_alpha_per_probe_response_and_sends_next_probe) {
  Driver driver = start();
  driver.cnp(10);
  for (unsigned i = 1; i <= 4; ++i) {
    answer(driver);
    EXPECT_NEAR(window(driver), kBdp - 5 + i * 0.125, 1e-6);
    EXPECT_TRUE(asks(driver));
    EXPECT_EQ(driver.reason_name(), "added");
  }
  driver.rtt(kBase);
  EXPECT_NEAR(window(driver), kBdp - 4.5, 1e-6) << "a sample that answers no probe is none";
}

// L55: 45.0954 + 0.125 packets of 8384 bits per 8.4 us.
TEST_F(LdcpPcc, rate_is_window_over_measured_or_base_rtt) {
  Driver measured = start(), base = start({{"measured_rtt", 0}});
  for (Driver* driver : {&measured, &base}) {
    driver->cnp(10);
    answer(*driver, 8400);
  }
  EXPECT_NEAR(static_cast<double>(measured.decision.rate), (kBdp - 5 + 0.125) * 8384 / 8.4e-6, 2);
  EXPECT_NEAR(static_cast<double>(base.decision.rate), (kBdp - 5 + 0.125) * 8384 / 4.2e-6, 2);
  answer(measured, 2000);
  EXPECT_NEAR(window(measured), kBdp - 5 + 0.25, 1e-6) << "a probe is short: never less than the base";
}

// L54: or a timeout. 300 us, 600, 1200, ... up to 256 times that.
TEST_F(LdcpPcc, repeats_lost_probe_with_exponential_backoff) {
  Driver driver = start();
  driver.cnp(10);
  uint64_t wait = 300'000;
  for (unsigned i = 0; i < 12; ++i) {
    driver.event.sent_bytes = 1048;
    driver.call(ROCI_CC_ON_ACK);
    EXPECT_FALSE(asks(driver));
    EXPECT_EQ(driver.decision.timer_ns[0], driver.event.now_ns + wait);
    EXPECT_EQ(driver.wait(wait), 1U);
    EXPECT_TRUE(asks(driver));
    EXPECT_EQ(driver.reason_name(), "probe_unanswered");
    EXPECT_EQ(driver.state_name(), "unanswered");
    EXPECT_NEAR(window(driver, static_cast<double>(wait)), kBdp - 5, 1e-3)
        << "a round trip is as long at least";
    wait = std::min<uint64_t>(2 * wait, 256 * 300'000);
  }
  answer(driver);
  EXPECT_NEAR(window(driver), kBdp - 5 + 0.125, 1e-6) << "silence is none in which the window grows";
  EXPECT_EQ(driver.state_name(), "stable");
  EXPECT_EQ(driver.decision.timer_ns[0], driver.event.now_ns + 300'000);
}

TEST_F(LdcpPcc, sends_no_probe_while_flow_is_idle) {
  Driver driver = start();
  driver.rtt(kBase, ROCI_CC_ON_RTT | ROCI_CC_ON_PROBE);
  EXPECT_FALSE(asks(driver));
  EXPECT_EQ(driver.decision.sent_notice, 1U);
  EXPECT_EQ(driver.wait(1'000'000'000), 0U);
  driver.event.sent_bytes = 1048;
  driver.call(ROCI_CC_ON_SENT);
  EXPECT_TRUE(asks(driver));
  EXPECT_EQ(driver.decision.sent_notice, 0U);
  driver.wait(300'000);  // not answered, and nothing was sent
  EXPECT_FALSE(asks(driver));
  EXPECT_EQ(driver.decision.timer_ns[0], 0U);
}

TEST_F(LdcpPcc, ignores_unsolicited_probe_responses) {
  Driver driver = start();
  driver.cnp(10);
  const auto rate = driver.decision.rate;
  driver.rtt(0, ROCI_CC_ON_RTT | ROCI_CC_ON_PROBE);
  EXPECT_EQ(driver.reason_name(), "implausible");
  driver.rtt(kBase, ROCI_CC_ON_RTT | ROCI_CC_ON_PROBE);
  EXPECT_EQ(driver.reason_name(), "added");
  EXPECT_FALSE(asks(driver));
  for (unsigned i = 0; i < 100; ++i) driver.rtt(kBase, ROCI_CC_ON_RTT | ROCI_CC_ON_PROBE);
  EXPECT_EQ(driver.reason_name(), "implausible");
  EXPECT_NEAR(static_cast<double>(driver.decision.rate), static_cast<double>(rate) + 0.125 * 8384 / 4.2e-6,
              2);
}

TEST_F(LdcpPcc, window_falls_below_one_packet_down_to_gamma_and_recovers) {
  Driver driver = start({{"alpha", 0.25}});
  driver.cnp(99);
  EXPECT_NEAR(window(driver), kBdp - 49.5, 1e-6);
  EXPECT_EQ(driver.state_name(), "sub_packet");
  driver.cnp(4'000'000'000U);
  EXPECT_NEAR(window(driver), 0.125, 1e-6);
  for (unsigned i = 0; i < 4; ++i) answer(driver);
  EXPECT_NEAR(window(driver), 1.125, 1e-6);
  EXPECT_EQ(driver.state_name(), "stable");
  Driver slow = start({{"min_rate", 1e9}});
  slow.cnp(1000);
  EXPECT_EQ(slow.decision.rate, 1'000'000'000U);
}

// A3. A CNP every 8.4 us represents the packets of two windows, and reduces the window by at most half. A CNP every
// 420 ns represents a tenth of a window, 5.00954 packets, and reduces it by half of those.
TEST_F(LdcpPcc, scales_reduction_by_cnp_interval) {
  Driver seldom = start({{"cnp_interval", 8400}}), often = start({{"cnp_interval", 420}}),
         always = start({{"cnp_interval", 1}});
  seldom.cnp();
  EXPECT_NEAR(window(seldom), kBdp / 2, 1e-6);
  seldom.cnp(2);
  EXPECT_NEAR(window(seldom), kBdp / 8, 1e-6);
  often.cnp();
  EXPECT_NEAR(window(often), kBdp - 0.5 * kBdp / 10, 1e-6);
  always.cnp();
  EXPECT_NEAR(window(always), kBdp - 0.5, 1e-6) << "never less than one beta";
}

TEST_F(LdcpPcc, cnp_at_line_rate_halves_window) {
  Driver driver(plugin("ldcp_pcc"));
  driver.cnp(3);
  EXPECT_EQ(driver.reason_name(), "line_cut");
  EXPECT_NEAR(window(driver), kBdp / 2 - 1, 1e-6);
  driver.cnp();
  EXPECT_NEAR(window(driver), kBdp / 2 - 1.5, 1e-6);
}

TEST_F(LdcpPcc, halves_window_once_per_round_trip_on_loss) {
  Driver driver = start();
  driver.call(ROCI_CC_ON_LOSS);
  driver.call(ROCI_CC_ON_LOSS);
  EXPECT_NEAR(window(driver), kBdp / 2, 1e-6);
  driver.wait(kBase);
  driver.call(ROCI_CC_ON_LOSS);
  EXPECT_NEAR(window(driver), kBdp / 4, 1e-6);
  driver.call(ROCI_CC_ON_TIMEOUT);
  EXPECT_NEAR(window(driver), 1, 1e-6);
  EXPECT_EQ(driver.reason_name(), "timeout_cut");
  driver.cnp(4);
  driver.call(ROCI_CC_ON_TIMEOUT);
  EXPECT_NEAR(window(driver), 0.125, 1e-6) << "a packet at most";
  Driver deaf = start({{"loss_factor", 1}});
  deaf.call(ROCI_CC_ON_LOSS | ROCI_CC_ON_TIMEOUT);
  EXPECT_EQ(deaf.decision.rate, 100'000'000'000U);
}

// 100 Gb/s for 10 us are 119.3 packets.
TEST_F(LdcpPcc, derives_first_window_from_probe_without_base_rtt) {
  roci_cc_flow flow = Driver::usual_flow();
  flow.base_rtt_ns = 0;
  Driver driver = start({}, flow);
  driver.cnp();
  driver.call(ROCI_CC_ON_LOSS);
  EXPECT_EQ(driver.decision.rate, 100'000'000'000U);
  answer(driver, 10'000);
  EXPECT_EQ(driver.decision.rate, 100'000'000'000U);
  driver.cnp(10);
  EXPECT_NEAR(window(driver, 10'000), 100e9 * 1e-5 / 8384 - 5, 1e-6);
  driver.parameters[driver.index_of("measured_rtt")] = 0;
  EXPECT_STREQ(plugin("ldcp_pcc").check(&flow, driver.parameters.data()),
               "measured_rtt: 0 requires base_rtt");
}

TEST_F(LdcpPcc, window_parameter_limits_bytes_in_flight) {
  Driver driver = start({{"window", 1}});
  EXPECT_EQ(driver.decision.window, 52'500U);
  driver.cnp(20);
  EXPECT_EQ(driver.decision.window, 52'500U - 10'480);
  driver.cnp(1000);
  EXPECT_EQ(driver.decision.window, 1048U) << "a packet may always go";
  roci_cc_flow responses = Driver::usual_flow();
  responses.provides = ROCI_CC_NEEDS_CNP | ROCI_CC_NEEDS_PROBE;
  EXPECT_EQ(start({{"window", 1}}, responses).decision.window, ROCI_CC_NO_LIMIT);
}

// The maximum window follows the round-trip time: a long one does not permit a larger window later.
TEST_F(LdcpPcc, maximum_window_follows_current_rtt) {
  Driver driver = start();
  for (unsigned i = 0; i < 10'000; ++i) answer(driver, 42'000);
  EXPECT_EQ(driver.decision.rate, 100'000'000'000U);
  answer(driver, kBase);
  driver.cnp();
  EXPECT_NEAR(window(driver), kBdp - 0.5, 1e-6);
}

class LdcpPccProperty : public testing::TestWithParam<uint64_t> {};

TEST_P(LdcpPccProperty, more_cnps_never_give_a_higher_rate_and_probes_restore_line_rate) {
  std::mt19937_64 rng(GetParam());
  const double interval = GetParam() % 2 == 0 ? 0 : 50'000;
  Driver fewer(plugin("ldcp_pcc"), {{"cnp_interval", interval}});
  Driver more(plugin("ldcp_pcc"), {{"cnp_interval", interval}});
  const auto answer = [](Driver& driver, uint32_t nanos) {
    driver.event.sent_bytes = 1048;
    driver.rtt(nanos, ROCI_CC_ON_RTT | ROCI_CC_ON_PROBE);
  };
  for (unsigned i = 0; i < 500; ++i) {
    const auto nanos = static_cast<uint32_t>(kBase + rng() % 20'000);
    const uint64_t what = rng() % 4;
    if (what == 0) fewer.cnp();
    if (what <= 1) more.cnp();
    answer(fewer, nanos);
    answer(more, nanos);
    ASSERT_LE(more.decision.rate, fewer.decision.rate) << i;
  }
  for (unsigned i = 0; i < 2000; ++i) answer(more, kBase);
  EXPECT_EQ(more.decision.rate, 100'000'000'000U);
}

INSTANTIATE_TEST_SUITE_P(Seeds, LdcpPccProperty, testing::Range<uint64_t>(1, 11));

}  // namespace
}  // namespace roci::test
