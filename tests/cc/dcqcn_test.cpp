// DCQCN: published values, rules, and bounds for any input.
#include <cmath>
#include <cstring>
#include <random>

#include "cc/driver.hpp"
#include "congestion/built_in_profiles.hpp"

namespace roci::test {
namespace {

constexpr double kLine = 100e9;
constexpr uint64_t kUs = 1000;

// The built-in profile of the paper, changed by `more`.
Driver::Values paper(const Driver::Values& more = {}) {
  Driver::Values values = find_built_in_profile("dcqcn_paper")->parameters;
  for (const auto& [name, value] : more) values[name] = value;
  return values;
}

// The NIC's values, changed by `more`.
Driver::Values nic(const Driver::Values& more = {}) { return more; }

// Alpha, derived from a cut: the rate is multiplied by 1 - alpha/2.
double alpha_of(double before, double after) { return 2 * (1 - after / before); }

constexpr double kKeep = 1019.0 / 1024;  // 1 - g of the NIC's values
// Alpha in 1024ths after `periods` without a CNP.
double decayed(double alpha, int periods) { return alpha * std::pow(kKeep, periods); }
// Rate in bit/s after one cut from the line rate with alpha in 1024ths.
double cut_once(double alpha) { return kLine * (1 - alpha / 2048); }

class Dcqcn : public testing::Test {
 protected:
  static Driver start(const Driver::Values& values) { return Driver(plugin("dcqcn"), values); }
  static double gbit(const Driver& driver) { return static_cast<double>(driver.decision.rate) / 1e9; }
};

TEST_F(Dcqcn, starts_at_line_rate_without_timers) {
  Driver driver = start(nic());
  EXPECT_EQ(driver.decision.rate, 100'000'000'000U);
  EXPECT_EQ(driver.decision.window, ROCI_CC_NO_LIMIT);
  EXPECT_EQ(driver.state_name(), "line_rate");
  EXPECT_EQ(driver.wait(1'000'000'000), 0U);
  EXPECT_EQ(driver.decision.sent_notice, 0U);
}

// Golden vector of the reference: g = 1/256, alpha = 1, target = line rate, AI = 40 Mb/s, F = 5, three CNPs, seven
// timers.
TEST_F(Dcqcn, follows_paper_vector_of_cuts_and_recovery) {
  Driver driver = start(paper());
  EXPECT_NEAR((driver.cnp(), gbit(driver)), 50, 1e-6);
  EXPECT_NEAR((driver.cnp(), gbit(driver)), 25, 1e-6);
  EXPECT_NEAR((driver.cnp(), gbit(driver)), 12.5, 1e-6);
  EXPECT_EQ(driver.reason_name(), "cut");
  const double rates[] = {18.750000, 21.875000, 23.437500, 24.218750, 24.629375, 24.854688, 24.987344};
  for (unsigned stage = 0; stage < 7; ++stage) {
    EXPECT_EQ(driver.wait(55 * kUs), 1U);
    EXPECT_NEAR(gbit(driver), rates[stage], 1e-6) << stage;
    EXPECT_EQ(driver.reason_name(), stage < 4 ? "recovered" : "added") << stage;
    EXPECT_EQ(driver.state_name(), stage < 4 ? "fast_recovery" : "additive_increase") << stage;
  }
}

// Golden vector: without CNPs alpha is 0.996093750, 0.992202759, 0.988326967 after one, two and three periods.
TEST_F(Dcqcn, alpha_decays_as_in_paper_vector) {
  const double alphas[] = {1, 0.996093750, 0.992202759, 0.988326967};
  for (unsigned periods = 0; periods < 4; ++periods) {
    Driver driver = start(paper({{"rpg_time_reset", 1e10}}));
    driver.cnp();
    driver.wait(periods * 55 * kUs + 54 * kUs);
    const double before = gbit(driver);
    driver.cnp();
    EXPECT_NEAR(alpha_of(before, gbit(driver)), alphas[periods], 1e-8) << periods;
  }
}

// Alpha is 1 at the first CNP and stays 1. From 255/256 it rises by 1/256^2: (1-g) 255/256 + g.
TEST_F(Dcqcn, raises_alpha_after_cut_as_paper_or_before_cut_as_nic) {
  const double fallen = 255.0 / 256, risen = fallen * 255 / 256 + 1.0 / 256;
  for (const double first : {0.0, 1.0}) {
    Driver driver = start(paper({{"rpg_time_reset", 1e10}, {"alpha_first", first}}));
    driver.cnp();
    driver.wait(55 * kUs);
    double before = gbit(driver);
    driver.cnp();
    EXPECT_NEAR(alpha_of(before, gbit(driver)), first != 0 ? risen : fallen, 1e-9);
    before = gbit(driver);
    driver.cnp();
    EXPECT_NEAR(alpha_of(before, gbit(driver)), first != 0 ? risen * 255 / 256 + 1.0 / 256 : risen, 1e-9);
  }
}

// The cut happens at the end of the monitor period, after the update of alpha. From 1023 without CNPs: 1018.0049,
// 1013.0342, 1008.0877, 1003.1654. The first alpha includes the first CNP.
TEST_F(Dcqcn, alpha_decays_by_g_each_period_with_the_nics_values) {
  for (const auto& [period, alpha] :
       {std::pair{1000, 1018.0049}, {2000, 1013.0342}, {3000, 1008.0877}, {4000, 1003.1654}}) {
    Driver driver = start(nic({{"rate_reduce_monitor_period", period}}));
    driver.cnp();
    EXPECT_EQ(gbit(driver), 100) << "before the period has ended";
    EXPECT_EQ(driver.wait(static_cast<uint64_t>(period)), 1U);
    EXPECT_NEAR(2048 * (1 - gbit(driver) / 100), alpha, 1e-4) << period;
  }
}

// A CNP each 6 us and an update each us: alpha rises once and falls five times. Then alpha = g / (1 - (1-g)^6) after
// the rise, 0.1687, and its mean is 1/6. Cuts are at the end of monitor periods of 4 us, by turns 2 and 4 us after a
// CNP: alpha is 0.16791 and 0.16627. In whole 1024ths it was 4 and 2 of them (0.00195).
TEST_F(Dcqcn, alpha_settles_at_its_mean_when_cnps_are_rare) {
  // rpg_gd 20: a cut subtracts 1/512 of what it normally does, so that the rate stays above its minimum.
  Driver driver = start(nic({{"rpg_gd", 20}, {"rpg_time_reset", 1e10}}));
  const auto alpha_of_next_cut = [&driver](uint64_t at) {
    const auto before = static_cast<double>(driver.decision.rate);
    driver.wait_until(at);
    return (1 - static_cast<double>(driver.decision.rate) / before) * 1024;
  };
  double early = 0, late = 0;
  for (uint64_t i = 0; i < 1000; ++i) {  // 6 ms
    driver.wait_until(i * 6 * kUs);
    driver.cnp();
    const uint64_t period = 4 * kUs, due = (i * 6 * kUs / period + 1) * period;
    (due == i * 6 * kUs + period ? late : early) = alpha_of_next_cut(due);
  }
  const double g = 5.0 / 1024, risen = g / (1 - std::pow(kKeep, 6));
  EXPECT_NEAR(early, risen * kKeep, 1e-6);
  EXPECT_NEAR(late, risen * std::pow(kKeep, 3), 1e-6);
  EXPECT_NEAR((early + late) / 2, 1.0 / 6, 1e-3);
}

// If the periods of alpha and of the monitor end together, the cut uses the previous alpha: three updates, not four.
TEST_F(Dcqcn, alpha_first_0_cuts_before_the_alpha_update) {
  Driver driver = start(nic({{"alpha_first", 0}}));
  driver.cnp();
  driver.wait(4 * kUs);
  EXPECT_NEAR(static_cast<double>(driver.decision.rate), cut_once(decayed(1023, 3)), 1);
}

TEST_F(Dcqcn, alpha_decays_only_after_a_full_period_without_cnp) {
  Driver driver = start(paper());
  for (unsigned i = 0; i < 4; ++i) {
    driver.cnp();
    driver.wait(30 * kUs);
  }
  EXPECT_NEAR(gbit(driver), 100.0 / 16, 1e-9) << "half of the rate each time";
}

// With one CNP per period 1 - alpha falls by g each time.
TEST_F(Dcqcn, alpha_approaches_one_with_one_cnp_per_period) {
  Driver driver = start(nic({{"rate_reduce_monitor_period", 1e6}}));
  driver.cnp();
  driver.wait(3500);
  EXPECT_EQ(driver.decision.rate, static_cast<uint64_t>(kLine));
  for (unsigned i = 0; i < 995; ++i) {  // one per period, for the periods 4 to 998
    driver.cnp();
    driver.wait(1000);
  }
  EXPECT_EQ(driver.event.now_ns, 998'500U);
  driver.cnp();
  driver.wait_until(1'000'000);  // the last period, 1000, has no CNP
  const double risen = 1024 - decayed(1024 - decayed(1023, 3), 996);
  EXPECT_NEAR(static_cast<double>(driver.decision.rate), cut_once(decayed(risen, 1)), 1);
}

// Golden vector: alpha 1023 leaves 0.50048828125 of the rate, 512 leaves 0.75. (The sum of the reference with gd =
// 11.)
TEST_F(Dcqcn, cuts_by_alpha_over_2_to_gd_limited_by_minimum_factor) {
  const auto left = [](const Driver::Values& values) {
    Driver driver = start(paper(values));
    driver.cnp();
    return gbit(driver) / 100;
  };
  EXPECT_NEAR(left({{"initial_alpha_value", 1023}}), 0.50048828125, 1e-11);
  EXPECT_NEAR(left({{"initial_alpha_value", 512}}), 0.75, 1e-11);
  EXPECT_NEAR(left({{"rpg_gd", 10}}), 0.5, 1e-11) << "1 - 1024/1024, but not below 50 %";
  EXPECT_NEAR(left({{"rpg_gd", 10}, {"rpg_min_dec_fac", 20}}), 0.2, 1e-11);
  EXPECT_NEAR(left({{"rpg_min_dec_fac", 100}}), 1, 1e-11) << "100 % prevents cuts";
}

TEST_F(Dcqcn, cuts_once_per_monitor_period_for_any_number_of_cnps) {
  Driver one = start(nic()), many = start(nic());
  one.cnp();
  many.cnp(1000);
  for (unsigned i = 0; i < 10; ++i) {
    many.wait(300);
    many.cnp(7);
  }
  one.wait_until(4 * kUs);
  many.wait_until(4 * kUs);
  EXPECT_NEAR(gbit(one), gbit(many), 1) << "alpha alone may be larger";
  EXPECT_EQ(many.reason_name(), "cut");
  const auto cut = many.decision.rate;
  EXPECT_EQ(many.wait(100 * kUs), 0U) << "and without CNPs there is no other";
  EXPECT_EQ(many.decision.rate, cut);
}

// The monitor periods start with the first CNP, at 0. So a CNP at 9 us causes a cut at 12 us.
TEST_F(Dcqcn, monitor_periods_start_with_first_cnp) {
  Driver driver = start(nic());
  driver.cnp();
  driver.wait_until(9 * kUs);
  driver.cnp();
  EXPECT_EQ(driver.decision.timer_ns[0], 12 * kUs);
  driver.wait_until(12 * kUs);
  driver.cnp();
  EXPECT_EQ(driver.decision.timer_ns[0], 16 * kUs) << "one at the end of a period is of the next";
}

TEST_F(Dcqcn, cuts_for_each_cnp_of_one_event) {
  Driver together = start(paper()), alone = start(paper());
  together.cnp(5);
  for (unsigned i = 0; i < 5; ++i) alone.cnp();
  EXPECT_EQ(together.decision.rate, alone.decision.rate);
  EXPECT_NEAR(gbit(together), 100.0 / 32, 1e-9);
}

// D10: the target is the rate before the cut. With clamp_tgt_rate 0 only if the rate has risen since the previous
// cut, and with clamp_tgt_rate_after_time_inc 0 only if it has risen by the byte counter.
TEST_F(Dcqcn, clamp_parameters_select_recovery_target) {
  const auto recovered = [](double clamp, double after_time, bool rise) {
    Driver driver = start(paper({{"clamp_tgt_rate", clamp}, {"clamp_tgt_rate_after_time_inc", after_time}}));
    driver.cnp();                     // 50, target 100
    if (rise) driver.wait(55 * kUs);  // 75
    driver.cnp();                     // 25, or 37.5 with alpha 255/256
    driver.wait(55 * kUs);            // halfway to the target
    return 2 * gbit(driver);
  };
  EXPECT_NEAR(recovered(1, 0, false), 25 + 50, 1e-9);
  EXPECT_NEAR(recovered(0, 1, false), 25 + 100, 1e-9);
  const double cut = 75 * (1 - 255.0 / 512);
  EXPECT_NEAR(recovered(1, 0, true), cut + 75, 1e-6);
  EXPECT_NEAR(recovered(0, 1, true), cut + 75, 1e-6);
  EXPECT_NEAR(recovered(0, 0, true), cut + 100, 1e-6);
}

// D11: both counters apply. F = 5: below 5 in both fast recovery; above in one additive increase; above in both hyper
// increase by i times R_HAI.
TEST_F(Dcqcn, timer_and_byte_counter_stages_select_increase_phase) {
  Driver driver = start(paper({{"rpg_time_reset", 1e6}}));
  driver.cnp(4);  // 6.25, target 12.5
  EXPECT_EQ(driver.decision.sent_notice, 10'000'000U);
  const auto send = [&](uint64_t bytes) {
    driver.event.sent_bytes = bytes;
    driver.call(ROCI_CC_ON_SENT);
  };
  send(9'999'999);
  EXPECT_EQ(driver.reason_name(), "nothing");
  EXPECT_EQ(driver.decision.sent_notice, 1U);
  send(1);
  EXPECT_NEAR(gbit(driver), 9.375, 1e-9);
  for (unsigned stage = 2; stage <= 4; ++stage) send(10'000'000);
  EXPECT_EQ(driver.state_name(), "fast_recovery");
  send(10'000'000);
  EXPECT_EQ(driver.reason_name(), "added");
  send(20'000'000);  // seven of the byte counter, none of the timer
  EXPECT_EQ(driver.reason_name(), "added");
  for (unsigned stage = 1; stage <= 5; ++stage) driver.wait(1'000'000);
  EXPECT_EQ(driver.reason_name(), "added");
  driver.wait(1'000'000);  // min(6, 7) > 5
  EXPECT_EQ(driver.reason_name(), "hyper_added");
  EXPECT_EQ(driver.state_name(), "hyper_increase");
  // The target was 12.5 + 8 * 0.04 after eight additive steps, + 1 * 0.4, and + 2 * 0.4 with the seventh step of both
  // counters.
  const double before = gbit(driver);
  driver.wait(1'000'000);
  EXPECT_NEAR(2 * gbit(driver) - before, 12.5 + 8 * 0.04 + 1 * 0.4 + 2 * 0.4, 1e-6);
}

TEST_F(Dcqcn, hyper_increase_uses_constant_steps_as_in_the_nic) {
  Driver driver =
      start(nic({{"rpg_hai_rate", 1e9}, {"rate_reduce_monitor_period", 0}, {"clamp_tgt_rate", 1}}));
  driver.cnp(5);
  // The NIC's values: one period of fast recovery, one additive increase, then hyper increase.
  const char* reasons[] = {"recovered", "added", "hyper_added", "hyper_added", "hyper_added"};
  double target = 0;
  for (const char* reason : reasons) {
    const double before = gbit(driver);
    driver.wait(300 * kUs);
    EXPECT_EQ(driver.reason_name(), reason);
    const double now = 2 * gbit(driver) - before;
    const double step = driver.reason_name() == "recovered" ? 0 : driver.reason_name() == "added" ? 0.005 : 1;
    if (target > 0) {
      EXPECT_NEAR(now - target, step, 1e-6);
    }
    target = now;
  }
}

// Bytes sent before the cut do not count for the period that starts with it, although the notice arrives as
// requested.
TEST_F(Dcqcn, byte_counter_restarts_at_cut) {
  Driver driver = start(paper({{"rpg_time_reset", 1e10}}));
  driver.cnp();
  driver.event.sent_bytes = 6'000'000;
  driver.cnp();
  EXPECT_NEAR(gbit(driver), 25, 1e-9);
  driver.event.sent_bytes = 4'000'000;
  driver.call(ROCI_CC_ON_SENT);
  EXPECT_NEAR(gbit(driver), 25, 1e-9);
  EXPECT_EQ(driver.decision.sent_notice, 6'000'000U);
  driver.event.sent_bytes = 6'000'000;
  driver.call(ROCI_CC_ON_SENT);
  EXPECT_NEAR(gbit(driver), 37.5, 1e-9);
}

// Missed notices are made up for within bounds, and only once.
TEST_F(Dcqcn, byte_counter_catches_up_once_after_a_large_gap) {
  Driver driver = start(paper({{"rpg_time_reset", 1e10}}));
  driver.cnp(5);
  driver.event.sent_bytes = 10'000'000'000'005U;
  driver.call(ROCI_CC_ON_SENT);
  EXPECT_EQ(driver.decision.sent_notice, 9'999'995U);
  const auto rate = driver.decision.rate;
  driver.call(ROCI_CC_ON_ACK);
  EXPECT_EQ(driver.decision.rate, rate);
  EXPECT_EQ(driver.state_name(), "additive_increase");
}

TEST_F(Dcqcn, release_at_max_resets_alpha_for_next_cnp) {
  for (const double release : {0.0, 1.0}) {
    Driver driver = start(nic({{"release_at_max", release}}));
    driver.cnp();
    driver.wait(20'000 * kUs);
    EXPECT_EQ(driver.state_name(), "line_rate");
    EXPECT_EQ(driver.decision.rate, 100'000'000'000U);
    EXPECT_EQ(driver.decision.timer_ns[0] + driver.decision.timer_ns[1], 0U);
    driver.cnp();
    driver.wait(4 * kUs);
    if (release != 0) {
      EXPECT_NEAR(static_cast<double>(driver.decision.rate), cut_once(decayed(1023, 4)), 1);
    } else {  // alpha has fallen to nearly 0 and rises to 5, then decays in three periods
      EXPECT_NEAR(static_cast<double>(driver.decision.rate), cut_once(decayed(5, 3)), 1);
    }
  }
}

TEST_F(Dcqcn, first_cnp_sets_configured_rate_but_never_increases_it) {
  Driver driver = start(nic({{"rate_to_set_on_first_cnp", 20e9}}));
  driver.cnp();
  EXPECT_NEAR(gbit(driver), 20, 1e-9);
  driver.wait(4 * kUs);
  EXPECT_NEAR(gbit(driver), 20 * (1 - decayed(1023, 4) / 2048), 1e-6);
  driver.cnp();
  EXPECT_LT(gbit(driver), 20) << "and with no other";
  Driver more = start(paper({{"rate_to_set_on_first_cnp", 200e9}}));
  more.cnp();
  EXPECT_NEAR(gbit(more), 50, 1e-9) << "never up";
}

TEST_F(Dcqcn, rate_stays_between_minimum_and_maximum) {
  Driver driver = start(paper({{"rpg_min_rate", 2e9}, {"rpg_max_rate", 40e9}}));
  EXPECT_EQ(driver.decision.rate, 40'000'000'000U);
  driver.cnp(4'000'000'000U);
  EXPECT_EQ(driver.decision.rate, 2'000'000'000U);
  driver.wait(1'000'000'000);
  EXPECT_EQ(driver.decision.rate, 40'000'000'000U);
  const roci_cc_plugin& dcqcn = plugin("dcqcn");
  Driver wrong = start(paper());
  wrong.parameters[wrong.index_of("rpg_max_rate")] = 1e5;
  EXPECT_STREQ(dcqcn.check(nullptr, wrong.parameters.data()), "rpg_min_rate must not exceed rpg_max_rate");
}

// 52500 bytes per 4.2 us are 100 Gb/s.
TEST_F(Dcqcn, window_is_fixed_or_proportional_and_requires_acknowledgments) {
  Driver fixed = start(paper({{"window", 1}})), share = start(paper({{"window", 2}}));
  EXPECT_EQ(fixed.decision.window, 52'500U);
  EXPECT_EQ(share.decision.window, 52'500U);
  fixed.cnp();
  share.cnp();
  EXPECT_EQ(fixed.decision.window, 52'500U);
  EXPECT_EQ(share.decision.window, 26'250U);
  share.cnp(20);
  EXPECT_EQ(share.decision.window, 1048U) << "a packet";

  roci_cc_flow responses = Driver::usual_flow();
  responses.provides = ROCI_CC_NEEDS_CNP;
  EXPECT_EQ(Driver(plugin("dcqcn"), paper({{"window", 1}}), responses).decision.window, ROCI_CC_NO_LIMIT);
  responses.base_rtt_ns = 0;
  EXPECT_NE(plugin("dcqcn").check(&responses, fixed.parameters.data()), nullptr);
}

// Q33. A feedback of 21/63 is a third: the rate falls by a sixth.
TEST_F(Dcqcn, notice_alpha_derives_alpha_from_cnm_feedback) {
  Driver driver = start(paper({{"notice_alpha", 1}}));
  driver.event.cnm.feedback = 21;
  driver.call(ROCI_CC_ON_CNM);
  EXPECT_EQ(driver.reason_name(), "notice_cut");
  EXPECT_NEAR(gbit(driver), 100 * (1 - 1.0 / 6), 1e-6);
  driver.event.cnm.feedback = 64;
  driver.call(ROCI_CC_ON_CNM);
  EXPECT_EQ(driver.reason_name(), "implausible");
  EXPECT_NEAR(gbit(driver), 100 * (1 - 1.0 / 6), 1e-6);

  Driver periodic = start(nic({{"notice_alpha", 1}}));
  periodic.event.cnm.feedback = 63;
  periodic.call(ROCI_CC_ON_CNM);
  periodic.wait(4 * kUs);
  EXPECT_NEAR(static_cast<double>(periodic.decision.rate), cut_once(decayed(1024, 4)), 1);

  // The notice sets alpha, regardless of earlier CNPs: 1024 at 4.3 us, then three updates up to the cut at 8 us.
  Driver mixed = start(nic({{"notice_alpha", 1}}));
  mixed.cnp();
  mixed.wait(4200);
  mixed.cnp();
  mixed.wait(100);
  mixed.event.cnm.feedback = 63;
  mixed.call(ROCI_CC_ON_CNM);
  const auto before = static_cast<double>(mixed.decision.rate);
  mixed.wait_until(8 * kUs);
  EXPECT_NEAR(static_cast<double>(mixed.decision.rate), before * (1 - decayed(1024, 3) / 2048), 1);

  Driver deaf = start(paper());
  deaf.event.cnm.feedback = 63;
  deaf.call(ROCI_CC_ON_CNM);
  EXPECT_EQ(deaf.decision.rate, 100'000'000'000U);
}

// Closed form: one update after a long time equals continuous updates.
TEST_F(Dcqcn, late_alpha_update_equals_continuous_updates) {
  Driver seldom = start(nic({{"rpg_time_reset", 1e10}}));
  Driver often = start(nic({{"rpg_time_reset", 1e10}}));
  seldom.cnp();
  often.cnp();
  for (unsigned i = 0; i < 1000; ++i) {
    often.wait(377);
    often.ack();
  }
  seldom.wait(377'000);
  seldom.cnp();
  often.cnp();
  seldom.wait(4 * kUs);
  often.wait(4 * kUs);
  EXPECT_EQ(seldom.decision.rate, often.decision.rate);
  EXPECT_LT(gbit(often), 50);
}

class DcqcnProperty : public testing::TestWithParam<uint64_t> {};

TEST_P(DcqcnProperty, more_cnps_never_give_a_higher_rate) {
  std::mt19937_64 rng(GetParam());
  const Driver::Values values =
      GetParam() % 2 == 0 ? nic({{"release_at_max", 0}, {"clamp_tgt_rate", 1}}) : paper();
  Driver fewer(plugin("dcqcn"), values), more(plugin("dcqcn"), values);
  fewer.cnp();
  more.cnp();
  for (unsigned i = 0; i < 300; ++i) {
    const uint64_t pause = rng() % 20'000;
    fewer.wait(pause);
    more.wait(pause);
    const uint64_t what = rng() % 4;
    if (what == 0) fewer.cnp();
    if (what <= 1) more.cnp();
    ASSERT_LE(more.decision.rate, fewer.decision.rate) << i;
  }
}

TEST_P(DcqcnProperty, rate_returns_to_line_rate_without_cnps) {
  std::mt19937_64 rng(GetParam());
  Driver driver(plugin("dcqcn"),
                GetParam() % 2 == 0 ? nic({{"rpg_ai_rate", 1e9}, {"rpg_hai_rate", 10e9}}) : paper());
  for (unsigned i = 0; i < 100; ++i) {
    driver.cnp(static_cast<uint32_t>(rng() % 5 + 1));
    driver.wait(rng() % 100'000);
  }
  EXPECT_LT(driver.decision.rate, 100'000'000'000U);
  uint64_t before = driver.decision.rate;
  driver.wait(5 * kUs);  // the last cut
  for (before = driver.decision.rate; driver.state_name() != "line_rate";) {
    driver.wait(55 * kUs);
    ASSERT_GE(driver.decision.rate, before);
    before = driver.decision.rate;
    ASSERT_LT(driver.event.now_ns, 2'000'000'000U);
  }
  EXPECT_EQ(driver.decision.rate, 100'000'000'000U);
}

INSTANTIATE_TEST_SUITE_P(Seeds, DcqcnProperty, testing::Range<uint64_t>(1, 21));

}  // namespace
}  // namespace roci::test
