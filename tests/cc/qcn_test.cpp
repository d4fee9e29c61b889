// QCN: the reaction point of 802.1Q with its published values, and additional values in notifications.
#include <random>

#include "cc/driver.hpp"

namespace roci::test {
namespace {

constexpr uint64_t kMs = 1'000'000;

// The line rate for which the MIB's values are specified.
roci_cc_flow ten_gigabit_with_only_cnm() {
  roci_cc_flow flow = Driver::usual_flow();
  flow.line_rate = 10'000'000'000;
  flow.provides = ROCI_CC_NEEDS_CNM;
  return flow;
}

class Qcn : public testing::Test {
 protected:
  static Driver start(Driver::Values values = {}, const roci_cc_flow& flow = ten_gigabit_with_only_cnm()) {
    values.emplace("jitter", 0);
    return Driver(plugin("qcn"), values, flow);
  }
  static void hear(Driver& driver, uint32_t feedback) {
    driver.event.cnm.feedback = feedback;
    driver.call(ROCI_CC_ON_CNM);
  }
  static void hear_change(Driver& driver, int64_t change, uint32_t feedback = 0) {
    driver.event.cnm.rate_change = change;
    hear(driver, feedback);
  }
  static void hear_available(Driver& driver, uint64_t available, uint32_t feedback = 0) {
    driver.event.cnm.available = available;
    hear(driver, feedback);
  }
  static void send(Driver& driver, uint64_t bytes) {
    driver.event.sent_bytes = bytes;
    driver.call(ROCI_CC_ON_SENT);
  }
  static double gbit(const Driver& driver) { return static_cast<double>(driver.decision.rate) / 1e9; }
};

TEST_F(Qcn, starts_at_line_rate_without_timers) {
  Driver driver = start();
  EXPECT_EQ(driver.decision.rate, 10'000'000'000U);
  EXPECT_EQ(driver.state_name(), "line_rate");
  EXPECT_EQ(driver.wait(1000 * kMs), 0U);
  EXPECT_EQ(driver.decision.sent_notice, 0U);
}

// Q14. Golden vectors of the reference (QntzFb, dec): 1 leaves 0.992188, 5 0.960938, 21 0.835938, 63 0.507812; 0
// leaves all.
TEST_F(Qcn, cuts_rate_by_cnm_feedback) {
  const std::pair<uint32_t, double> vectors[] = {
      {0, 1}, {1, 0.992188}, {5, 0.960938}, {21, 0.835938}, {63, 0.507812}};
  for (const auto& [feedback, left] : vectors) {
    Driver driver = start();
    hear(driver, feedback);
    EXPECT_NEAR(gbit(driver) / 10, left, 1e-6) << feedback;
    EXPECT_EQ(driver.reason_name(), feedback == 0 ? "nothing" : "cut");
  }
}

TEST_F(Qcn, minimum_factor_limits_a_cut) {
  Driver driver = start({{"rpg_gd", 5}});
  hear(driver, 63);  // 63/32 of the rate
  EXPECT_NEAR(gbit(driver), 5, 1e-9);
}

TEST_F(Qcn, ignores_feedback_above_63) {
  Driver driver = start();
  hear(driver, 64);
  EXPECT_EQ(driver.reason_name(), "implausible");
  EXPECT_EQ(driver.decision.rate, 10'000'000'000U);
}

// After two notifications in a row the target is the rate before the first: 10 G * 65/128 = 5.078125, * 65/128 =
// 2.5787354; then halfway to 10.
TEST_F(Qcn, consecutive_cnms_keep_first_target_rate) {
  Driver driver = start();
  hear(driver, 63);
  hear(driver, 63);
  const double cut = 10 * 65.0 / 128 * 65 / 128;
  EXPECT_NEAR(gbit(driver), cut, 1e-8);
  driver.wait(15 * kMs);
  const double risen = (cut + 10) / 2;
  EXPECT_NEAR(gbit(driver), risen, 1e-8);
  hear(driver, 63);  // now the target is the current rate
  driver.wait(15 * kMs);
  EXPECT_NEAR(gbit(driver), (risen * 65 / 128 + risen) / 2, 1e-8);
}

// Five cycles of 15 ms, then of 7.5 ms, with the timer alone: five times halfway to the target, then 5 Mb/s per
// cycle.
TEST_F(Qcn, recovers_in_five_cycles_then_increases_in_half_cycles) {
  Driver driver = start();
  hear(driver, 63);
  hear(driver, 63);
  hear(driver, 63);
  driver.wait(15 * kMs);
  for (unsigned i = 0; i < 4; ++i) hear(driver, 63);  // now the target is low, and far below the line rate
  double target = 10 * 65.0 / 128 * 65 / 128 * 65 / 128;
  target = (target + 10) / 2;
  double rate = gbit(driver);
  uint64_t now = driver.event.now_ns;
  for (unsigned stage = 1; stage <= 5; ++stage) {
    now += 15 * kMs;
    EXPECT_EQ(driver.decision.timer_ns[0], now) << stage;
    driver.wait_until(now);
    if (stage == 1 && target > 10 * rate) target /= 8;
    rate = (rate + target) / 2;
    EXPECT_NEAR(gbit(driver), rate, 1e-8) << stage;
    EXPECT_EQ(driver.state_name(), "fast_recovery");
  }
  for (unsigned stage = 6; stage <= 9; ++stage) {
    now += 15 * kMs / 2;
    driver.wait_until(now);
    target += 0.005;
    rate = (rate + target) / 2;
    EXPECT_NEAR(gbit(driver), rate, 1e-8) << stage;
    EXPECT_EQ(driver.reason_name(), "added");
  }
}

// Cycles of 150000 bytes, from the sixth on of 75000. The sixth cycle of both counters adds 50 Mb/s, the seventh 100.
TEST_F(Qcn, hyper_increase_requires_byte_and_timer_stages) {
  Driver driver = start();
  for (unsigned i = 0; i < 4; ++i) hear(driver, 63);
  EXPECT_EQ(driver.decision.sent_notice, 150'000U);
  send(driver, 149'000);
  EXPECT_EQ(driver.reason_name(), "nothing");
  EXPECT_EQ(driver.decision.sent_notice, 1000U);
  send(driver, 1500);
  EXPECT_EQ(driver.reason_name(), "recovered");
  EXPECT_EQ(driver.decision.sent_notice, 149'500U) << "what was more counts for the next";
  send(driver, 149'500);
  for (unsigned cycle = 3; cycle <= 5; ++cycle) send(driver, 150'000);
  EXPECT_EQ(driver.decision.sent_notice, 75'000U);
  EXPECT_EQ(driver.state_name(), "fast_recovery");
  hear_available(driver, 1'000'000'000);  // below the line rate, and both counters restart
  for (unsigned cycle = 1; cycle <= 5; ++cycle) send(driver, 150'000);
  send(driver, 150'000);
  EXPECT_EQ(driver.reason_name(), "added");
  EXPECT_EQ(driver.state_name(), "active_increase");
  for (unsigned cycle = 1; cycle <= 5; ++cycle) driver.wait(15 * kMs);
  EXPECT_EQ(driver.reason_name(), "added");
  const auto target_after = [&](uint64_t wait) {
    const double before = gbit(driver);
    driver.wait(wait);
    return 2 * gbit(driver) - before;
  };
  const double before = target_after(15 * kMs / 2);
  EXPECT_EQ(driver.reason_name(), "hyper_added");
  send(driver, 0);
  EXPECT_EQ(driver.state_name(), "hyper_increase");
  EXPECT_NEAR(target_after(15 * kMs / 2) - before, 0.1, 1e-6);
}

// 802.1Q 32.12.2. After five cuts by 65/128 the rate is 0.338 G, and the target is more than ten times that.
TEST_F(Qcn, first_cycle_reduces_target_far_above_the_rate) {
  Driver driver = start();
  for (unsigned i = 0; i < 5; ++i) hear(driver, 63);
  const double rate = gbit(driver);
  ASSERT_LT(rate, 1);
  driver.wait(15 * kMs);
  EXPECT_NEAR(gbit(driver), (rate + 10.0 / 8) / 2, 1e-8);
}

// Q34.
TEST_F(Qcn, applies_rate_change_of_a_cnm) {
  Driver driver = start();
  hear_change(driver, 1'000'000'000);
  EXPECT_EQ(driver.state_name(), "line_rate") << "there is nothing above the line";
  EXPECT_EQ(driver.reason_name(), "nothing");
  hear_change(driver, -4'000'000'000, 63);
  EXPECT_NEAR(gbit(driver), 6, 1e-9) << "and its feedback is not looked at";
  EXPECT_EQ(driver.reason_name(), "notified");
  hear_change(driver, 1'500'000'000);
  EXPECT_NEAR(gbit(driver), 7.5, 1e-9);
  driver.wait(50 * kMs);
  EXPECT_NEAR(gbit(driver), 7.5, 1e-9) << "who is told keeps to it";
  hear_change(driver, INT64_MAX);
  EXPECT_EQ(driver.decision.rate, 10'000'000'000U);
  EXPECT_EQ(driver.state_name(), "line_rate");
  hear_change(driver, INT64_MIN);
  EXPECT_EQ(driver.decision.rate, 5'000'000U);
}

// Q35.
TEST_F(Qcn, applies_available_rate_of_a_cnm) {
  Driver driver = start();
  driver.event.cnm.rate_change = 1;
  hear_available(driver, 2'500'000'000, 63);
  EXPECT_NEAR(gbit(driver), 2.5, 1e-9) << "whatever else it says";
  hear_available(driver, 4'000'000'000);
  EXPECT_NEAR(gbit(driver), 4, 1e-9);
  hear_available(driver, UINT64_MAX);
  EXPECT_EQ(driver.state_name(), "line_rate");
  hear_available(driver, 1);
  EXPECT_EQ(driver.decision.rate, 5'000'000U);

  Driver wary = start({{"obey_rates", 0}});
  hear_available(wary, 1);
  EXPECT_EQ(wary.decision.rate, 10'000'000'000U);
  hear_available(wary, 1, 63);
  EXPECT_NEAR(gbit(wary), 10 * 65.0 / 128, 1e-8);
}

// At 100 Gb/s ten times the bytes and the rates in the same time.
TEST_F(Qcn, scales_parameters_with_line_rate) {
  roci_cc_flow fast = ten_gigabit_with_only_cnm();
  fast.line_rate *= 10;
  Driver slow = start(), quick = start({}, fast);
  std::mt19937_64 rng(1);
  bool hyper = false;
  for (unsigned i = 0; i < 800; ++i) {
    const uint64_t pause = rng() % (3 * kMs), bytes = rng() % 20'000;
    slow.wait(pause);
    quick.wait(pause);
    // Notifications sometimes, then always, then never, up to hyper increase.
    const bool hears = i < 400 ? rng() % 40 == 0 : i < 450;
    const auto feedback = hears ? static_cast<uint32_t>(rng() % 64) : 0;
    slow.event.sent_bytes = bytes;
    quick.event.sent_bytes = 10 * bytes;
    hear(slow, feedback);
    hear(quick, feedback);
    ASSERT_NEAR(gbit(quick), 10 * gbit(slow), 1e-7) << i;
    hyper |= slow.state_name() == "hyper_increase";
  }
  EXPECT_TRUE(hyper);
  EXPECT_EQ(slow.state_name(), "line_rate");
  for (unsigned i = 0; i < 30; ++i) {
    hear(slow, 63);
    hear(quick, 63);
  }
  EXPECT_EQ(slow.decision.rate, 5'000'000U);
  EXPECT_EQ(quick.decision.rate, 50'000'000U);
  Driver plain = start({{"made_for", 0}}, fast);
  hear(plain, 1);
  EXPECT_EQ(plain.decision.sent_notice, 150'000U);
}

TEST_F(Qcn, cycle_lengths_differ_per_flow) {
  std::vector<uint64_t> ends;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    roci_cc_flow flow = ten_gigabit_with_only_cnm();
    flow.seed = seed;
    Driver driver(plugin("qcn"), {}, flow);
    hear(driver, 63);
    ends.push_back(driver.decision.timer_ns[0]);
    EXPECT_GE(ends.back(), 12'750'000U);
    EXPECT_LE(ends.back(), 17'250'000U);
  }
  EXPECT_LT(*std::min_element(ends.begin(), ends.end()), 13'000'000U);
  EXPECT_GT(*std::max_element(ends.begin(), ends.end()), 17'000'000U);
}

class QcnProperty : public testing::TestWithParam<uint64_t> {};

TEST_P(QcnProperty, more_feedback_never_gives_a_higher_rate_and_rate_recovers) {
  std::mt19937_64 rng(GetParam());
  Driver little(plugin("qcn"), {}, ten_gigabit_with_only_cnm()),
      much(plugin("qcn"), {}, ten_gigabit_with_only_cnm());
  for (unsigned i = 0; i < 30; ++i) {
    const auto feedback = static_cast<uint32_t>(rng() % 63 + 1);
    little.event.cnm.feedback = static_cast<uint32_t>(rng() % feedback + 1);
    much.event.cnm.feedback = feedback;
    little.call(ROCI_CC_ON_CNM);
    much.call(ROCI_CC_ON_CNM);
    ASSERT_LE(much.decision.rate, little.decision.rate) << i;
    ASSERT_GE(much.decision.rate, 5'000'000U);
  }
  uint64_t before = much.decision.rate;
  while (much.state_name() != "line_rate") {
    much.wait(5 * kMs);
    ASSERT_GE(much.decision.rate, before);
    before = much.decision.rate;
    ASSERT_LT(much.event.now_ns, 60'000 * kMs);
  }
  EXPECT_EQ(before, 10'000'000'000U);
}

INSTANTIATE_TEST_SUITE_P(Seeds, QcnProperty, testing::Range<uint64_t>(1, 21));

}  // namespace
}  // namespace roci::test
