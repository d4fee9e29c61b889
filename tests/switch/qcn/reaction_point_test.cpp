// The QCN reaction point, compared with manual calculations from 802.1Q 32.12.
#include "switch/qcn/reaction_point.hpp"

#include <gtest/gtest.h>

namespace roci {
namespace {

double mbps(const ReactionPoint& point) { return static_cast<double>(point.rate().value()) * 1e-6; }

// Only the byte counter expires: the timer is set to 10 s.
ReactionConfig bytes_only() {
  return {.time_reset = 10s, .byte_reset = Bytes{10'000}, .ai = 8_Mbps, .hai = 80_Mbps};
}
// Sends until the byte counter expires: 85 % to 115 % of `bytes`.
void cycle(ReactionPoint& point, uint64_t bytes) {
  const BitsPerSec before = point.rate();
  for (uint64_t sent = 0; point.rate() == before && sent < bytes * 2; sent += 10) point.sent(10, 1us);
}

TEST(ReactionPoint, rate_decreases_by_gd_for_each_unit_of_feedback) {
  for (const auto& [feedback, left] : {std::pair{1, 127.0 / 128}, {32, 0.75}, {63, 65.0 / 128}}) {
    ReactionPoint point({}, 10_Gbps, 1);
    EXPECT_FALSE(point.is_limiting());
    point.slow_down(static_cast<uint8_t>(feedback), 10_Gbps, 1us);
    EXPECT_TRUE(point.is_limiting());
    EXPECT_NEAR(mbps(point), 10'000 * left, 1e-3) << feedback;
  }
}

TEST(ReactionPoint, first_decrease_starts_from_the_measured_sending_rate) {
  ReactionPoint point({}, 10_Gbps, 1);
  point.slow_down(32, 400_Mbps, 1us);
  EXPECT_NEAR(mbps(point), 300, 1e-3);
  point.slow_down(32, 10_Gbps, 2us);
  EXPECT_NEAR(mbps(point), 225, 1e-3) << "later it knows itself";
}

TEST(ReactionPoint, one_decrease_is_at_most_half_and_not_below_the_minimum_rate) {
  ReactionPoint point({.min = 100_Mbps, .gd = 1}, 1_Gbps, 1);
  point.slow_down(63, 1_Gbps, 1us);
  EXPECT_NEAR(mbps(point), 500, 1e-3);
  for (int i = 0; i < 5; ++i) point.slow_down(63, 1_Gbps, 1us);
  EXPECT_NEAR(mbps(point), 100, 1e-3);
}

TEST(ReactionPoint, fast_recovery_halves_the_distance_to_the_target_in_each_cycle) {
  ReactionPoint point(bytes_only(), 10_Gbps, 1);
  point.slow_down(32, 1000_Mbps, 1us);
  double expected = 750;
  for (int i = 0; i < 5; ++i) {
    cycle(point, 10'000);
    expected = (expected + 1000) / 2;
    EXPECT_NEAR(mbps(point), expected, 0.01) << i;
  }
}

TEST(ReactionPoint, active_increase_raises_the_target_by_ai_with_one_counter) {
  ReactionPoint point(bytes_only(), 10_Gbps, 1);
  point.slow_down(32, 1000_Mbps, 1us);
  for (int i = 0; i < 5; ++i) cycle(point, 10'000);
  double expected = mbps(point), target = 1000;
  for (int i = 0; i < 4; ++i) {
    cycle(point, 5'000);
    target += 8;
    expected = (expected + target) / 2;
    EXPECT_NEAR(mbps(point), expected, 0.01) << i;
  }
}

TEST(ReactionPoint, hyper_active_increase_raises_the_target_by_hai_with_both_counters) {
  ReactionConfig config = bytes_only();
  config.time_reset = 1ms;
  ReactionPoint point(config, 10_Gbps, 1);
  point.slow_down(32, 1000_Mbps, 0us);
  for (int i = 0; i < 6; ++i) cycle(point, 10'000);  // 6 cycles of the byte counter
  Nanos now = 0us;
  std::vector<double> steps;
  while (steps.size() < 8) {  // then cycles of the timer
    const double before = mbps(point);
    now += 10us;
    point.advance(now);
    if (mbps(point) != before) steps.push_back(mbps(point));
  }
  // Target: 1000 + 8 (sixth byte cycle) + 5 x 8 (timer cycles). The sixth timer cycle is the first beyond 5 in both
  // counters and adds 80.
  EXPECT_NEAR(steps[5] - (steps[4] + 1048 + 80) / 2, 0, 0.05);
}

TEST(ReactionPoint, consecutive_decreases_keep_the_target_of_the_first) {
  ReactionPoint point(bytes_only(), 10_Gbps, 1);
  point.slow_down(32, 1000_Mbps, 1us);
  point.slow_down(32, 1000_Mbps, 1us);
  cycle(point, 10'000);
  EXPECT_NEAR(mbps(point), (562.5 + 1000) / 2, 0.01);
  point.slow_down(32, 1000_Mbps, 1us);  // after a cycle the target is the current rate
  cycle(point, 10'000);
  EXPECT_NEAR(mbps(point), (585.94 + 781.25) / 2, 0.01);
}

TEST(ReactionPoint, target_far_above_the_rate_is_reduced_at_the_first_cycle) {
  ReactionPoint point(bytes_only(), 10_Gbps, 1);
  for (int i = 0; i < 4; ++i) point.slow_down(63, 8000_Mbps, 1us);  // 532 Mb/s
  const double low = mbps(point);
  EXPECT_LT(low, 800);
  cycle(point, 10'000);
  EXPECT_NEAR(mbps(point), (low + 1000) / 2, 0.01);
}

TEST(ReactionPoint, limit_is_removed_at_line_rate) {
  ReactionPoint point({.time_reset = 100us, .ai = 100_Mbps, .hai = 1000_Mbps}, 1_Gbps, 1);
  point.slow_down(63, 1_Gbps, 0us);
  point.advance(1s);
  EXPECT_FALSE(point.is_limiting());
  EXPECT_EQ(point.rate(), 1_Gbps);
}

TEST(ReactionPoint, explicit_rate_change_is_applied_in_both_directions) {
  ReactionPoint point(bytes_only(), 1_Gbps, 1);
  point.change(1'000'000, 500_Mbps, 1us);
  EXPECT_FALSE(point.is_limiting()) << "without a limit there is nothing to raise";
  point.change(-100'000'000, 500_Mbps, 1us);
  EXPECT_NEAR(mbps(point), 400, 1e-3);
  point.change(30'000'000, 500_Mbps, 1us);
  EXPECT_NEAR(mbps(point), 430, 1e-3);
  cycle(point, 10'000);
  EXPECT_NEAR(mbps(point), 430, 1e-3) << "recovery stays where it is";
  point.change(-2'000'000'000, 500_Mbps, 1us);
  EXPECT_NEAR(mbps(point), 5, 1e-3) << "not below the least";
  point.change(2'000'000'000, 500_Mbps, 1us);
  EXPECT_FALSE(point.is_limiting());
}

}  // namespace
}  // namespace roci
