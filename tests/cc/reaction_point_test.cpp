// Rate control of reaction points: phases and increases. The plugins and the shapers of the switch have tests of their own.
#include "cc/reaction_point.hpp"

#include <gtest/gtest.h>

namespace roci::test {
namespace {

struct State {
  double current_rate = 0;
  double target_rate = 0;
  uint64_t increase_due = 0;
  uint32_t time_stage = 0;
  uint32_t byte_stage = 0;
};

constexpr uint64_t kCycle = 100;  // ns of the timer, and bytes of the counter

// QCN with 5 cycles of fast recovery, and rates that show each addition.
constexpr rp::Rules kRules{.max = 1e9,
                           .min = 1e3,
                           .ai = 1000,
                           .hai = 100'000,
                           .active_from = 6,
                           .hyper_above = 5,
                           .reduces_target = true};

class RateControl : public testing::Test {
 protected:
  // Decreases a rate of 8 Mb/s to half of it at time 0.
  void decrease() {
    state_.current_rate = state_.target_rate = 8e6;
    rates_.cut(0.5, true);
    state_.time_stage = state_.byte_stage = 0;
    state_.increase_due = kCycle;
  }
  std::optional<rp::Phase> pass_time(uint64_t now) {
    return rates_.pass_time(now, [] { return kCycle; });
  }
  std::optional<rp::Phase> send(uint64_t bytes) {
    return rates_.count(bytes, left_, [] { return kCycle; });
  }

  rp::Rules rules_ = kRules;
  State state_;
  rp::RateControl<State> rates_{state_, rules_};
  uint64_t left_ = kCycle;
};

TEST_F(RateControl, decrease_sets_the_target_if_requested_and_keeps_the_minimum) {
  decrease();
  EXPECT_EQ(state_.current_rate, 4e6);
  EXPECT_EQ(state_.target_rate, 8e6);
  rates_.cut(0.5, false);
  EXPECT_EQ(state_.current_rate, 2e6);
  EXPECT_EQ(state_.target_rate, 8e6);
  rates_.cut(0, false);
  EXPECT_EQ(state_.current_rate, 1e3);
}

TEST_F(RateControl, fast_recovery_halves_the_distance_to_the_target) {
  decrease();
  EXPECT_EQ(pass_time(kCycle - 1), std::nullopt);
  EXPECT_EQ(pass_time(kCycle), rp::Phase::kFastRecovery);
  EXPECT_EQ(state_.current_rate, 6e6);
  EXPECT_EQ(pass_time(2 * kCycle), rp::Phase::kFastRecovery);
  EXPECT_EQ(state_.current_rate, 7e6);
  EXPECT_EQ(state_.target_rate, 8e6);
  EXPECT_EQ(state_.increase_due, 3 * kCycle);
}

TEST_F(RateControl, larger_stage_starts_active_increase_and_smaller_stage_hyper_increase) {
  decrease();
  EXPECT_EQ(pass_time(5 * kCycle), rp::Phase::kFastRecovery);
  EXPECT_EQ(pass_time(6 * kCycle), rp::Phase::kActiveIncrease);
  EXPECT_EQ(state_.target_rate, 8e6 + 1000);
  EXPECT_EQ(send(5 * kCycle), rp::Phase::kActiveIncrease);
  EXPECT_EQ(state_.target_rate, 8e6 + 6000);
  EXPECT_EQ(send(kCycle), rp::Phase::kHyperIncrease);
  EXPECT_EQ(state_.target_rate, 8e6 + 6000 + 100'000);
  EXPECT_EQ(send(kCycle), rp::Phase::kHyperIncrease);  // the smaller stage has not changed
  EXPECT_EQ(state_.target_rate, 8e6 + 6000 + 200'000);
  EXPECT_EQ(pass_time(7 * kCycle), rp::Phase::kHyperIncrease);
  EXPECT_EQ(state_.target_rate, 8e6 + 6000 + 400'000);
}

TEST_F(RateControl, hyper_increase_is_constant_if_it_does_not_grow) {
  rules_.hyper_grows = false;
  rules_.counts_bytes = false;
  decrease();
  pass_time(5 * kCycle);
  for (uint64_t i = 1; i <= 3; ++i) {
    EXPECT_EQ(pass_time((5 + i) * kCycle), rp::Phase::kHyperIncrease);
    EXPECT_EQ(state_.target_rate, 8e6 + 100'000.0 * static_cast<double>(i));
  }
}

TEST_F(RateControl, byte_counter_keeps_the_bytes_of_the_unfinished_cycle) {
  decrease();
  left_ = 30;
  uint64_t bytes = 250;
  EXPECT_EQ(rates_.count(bytes, left_, [] { return kCycle; }), rp::Phase::kFastRecovery);
  EXPECT_EQ(state_.byte_stage, 3U);
  EXPECT_EQ(bytes, 20U);
  EXPECT_EQ(left_, kCycle);
}

TEST_F(RateControl, first_cycle_reduces_a_target_far_above_the_rate) {
  decrease();
  state_.current_rate = 0.5e6;
  pass_time(kCycle);
  EXPECT_EQ(state_.target_rate, 1e6);
  EXPECT_EQ(state_.current_rate, 0.75e6);
}

TEST_F(RateControl, one_call_applies_a_limited_number_of_cycles) {
  rules_.max_cycles = 3;
  decrease();
  pass_time(10 * kCycle);
  EXPECT_EQ(state_.time_stage, 3U);
  EXPECT_EQ(state_.increase_due, 11 * kCycle);
}

TEST_F(RateControl, limit_ends_near_the_maximum_rate) {
  rules_.max = 8e6;
  decrease();
  EXPECT_EQ(pass_time(8 * kCycle), rp::Phase::kActiveIncrease);
  EXPECT_TRUE(rates_.is_limiting());
  EXPECT_EQ(pass_time(9 * kCycle), rp::Phase::kLineRate);
  EXPECT_EQ(state_.current_rate, 8e6);
  EXPECT_FALSE(rates_.is_limiting());
  EXPECT_EQ(rates_.phase(), rp::Phase::kLineRate);
  EXPECT_EQ(send(10 * kCycle), std::nullopt);
}

}  // namespace
}  // namespace roci::test
