#include "transport/queue_pair/send_gate.hpp"

#include <gtest/gtest.h>

namespace roci::test {
namespace {

constexpr uint32_t kPayload = 1'000;
constexpr uint64_t kRate = 8'000'000'000;  // one packet per microsecond

SendGate paced(uint64_t rate, Nanos gap) {
  SendGate gate;
  gate.set_pace(rate, gap);
  return gate;
}

// Sends until the gate closes and returns the number of packets.
uint64_t row(SendGate& gate, Nanos now) {
  uint64_t packets = 0;
  for (; gate.admits(now, 0, kPayload); ++packets) gate.departed(now, kPayload, true);
  return packets;
}

// A worker with many queue pairs checks the gate only every 5 us. The gate still reaches its rate.
TEST(SendGate, late_checks_do_not_reduce_the_rate) {
  SendGate gate = paced(kRate, Nanos{0});
  uint64_t packets = row(gate, 1ms);
  for (int turn = 1; turn <= 1000; ++turn) packets += row(gate, 1ms + turn * 5us);
  EXPECT_EQ(packets, 5'001U);
}

TEST(SendGate, catches_up_at_most_twenty_microseconds) {
  SendGate gate = paced(kRate, Nanos{0});
  ASSERT_EQ(row(gate, 1ms), 1U);
  EXPECT_EQ(row(gate, 1ms + 20us), 20U);
  EXPECT_EQ(row(gate, 1ms + 100us), 1U) << "79 us late: it begins anew";
}

// Packets that left early delay later packets, so bursts do not exceed the rate.
TEST(SendGate, early_packets_do_not_exceed_the_rate) {
  SendGate gate = paced(kRate, Nanos{0});
  gate.early = 3us;
  EXPECT_EQ(row(gate, 1ms), 4U) << "one that is due, and those of three microseconds";
  EXPECT_EQ(gate.opens_at(), 1ms + 4us) << "when it can send as many again";
  uint64_t packets = 4;
  for (int turn = 1; turn <= 1000; ++turn) packets += row(gate, 1ms + turn * 4us);
  EXPECT_EQ(packets, 4'004U);
}

TEST(SendGate, admits_no_early_packet_with_a_gap_or_a_hold) {
  SendGate gate = paced(kRate, 1us);
  gate.early = 3us;
  EXPECT_EQ(row(gate, 1ms), 1U);
  EXPECT_EQ(row(gate, 1ms + 999ns), 0U);
  SendGate held = paced(kRate, Nanos{0});
  held.early = 3us;
  ASSERT_EQ(row(held, 1ms), 4U);
  held.hold_until(1ms + 10us);
  EXPECT_EQ(row(held, 1ms + 9us), 0U);
  EXPECT_EQ(row(held, 1ms + 10us), 4U);
}

TEST(SendGate, restarts_without_credit_after_a_pause) {
  SendGate gate = paced(kRate, Nanos{0});
  ASSERT_EQ(row(gate, 1ms), 1U);
  gate.pause();
  EXPECT_EQ(row(gate, 1ms + 10us), 1U);
}

TEST(SendGate, does_not_catch_up_with_a_minimum_gap) {
  SendGate gate = paced(SendGate::kNoLimit, 1us);
  for (int turn = 1; turn <= 10; ++turn) EXPECT_EQ(row(gate, 1ms + turn * 5us), 1U);
}

TEST(SendGate, applies_the_slower_of_rate_and_gap) {
  SendGate gate = paced(kRate, 3us);
  ASSERT_EQ(row(gate, 1ms), 1U);
  EXPECT_EQ(gate.admits(1ms + 2999ns, 0, kPayload), false);
  EXPECT_EQ(gate.opens_at(), 1ms + 3us);
  EXPECT_EQ(row(gate, 1ms + 3us), 1U);
}

TEST(SendGate, faster_pace_takes_effect_at_once) {
  SendGate gate = paced(kRate / 1000, Nanos{0});
  ASSERT_EQ(row(gate, 1ms), 1U);
  ASSERT_FALSE(gate.admits(1ms + 1us, 0, kPayload));
  gate.set_pace(kRate, Nanos{0});
  EXPECT_EQ(gate.opens_at(), 1ms + 1us);
  EXPECT_TRUE(gate.admits(1ms + 1us, 0, kPayload));
}

TEST(SendGate, slower_pace_takes_effect_at_once) {
  SendGate gate = paced(kRate, Nanos{0});
  ASSERT_EQ(row(gate, 1ms), 1U);
  ASSERT_FALSE(gate.admits(1ms + 500ns, 0, kPayload));
  gate.set_pace(kRate / 4, Nanos{0});
  EXPECT_EQ(gate.opens_at(), 1ms + 4us);
  EXPECT_FALSE(gate.admits(1ms + 3999ns, 0, kPayload));
  EXPECT_TRUE(gate.admits(1ms + 4us, 0, kPayload));
}

// Algorithms set the pace on each acknowledgment. With alternating paces the number of packets is between those of the
// two paces; setting the same pace again changes nothing.
TEST(SendGate, alternating_paces_send_between_the_slower_and_the_faster_one) {
  SendGate gate = paced(kRate, Nanos{0});
  uint64_t packets = row(gate, 1ms);
  for (int turn = 1; turn <= 10'000; ++turn) {
    const Nanos now = 1ms + turn * 700ns;
    packets += row(gate, now);
    gate.set_pace(turn % 2 == 0 ? kRate : kRate / 2, Nanos{0});
  }
  EXPECT_GT(packets, 3'500U);
  EXPECT_LT(packets, 7'001U);
  SendGate same = paced(kRate, Nanos{0});
  packets = row(same, 1ms);
  for (int turn = 1; turn <= 10'000; ++turn) {
    packets += row(same, 1ms + turn * 700ns);
    same.set_pace(kRate, Nanos{0});
  }
  EXPECT_EQ(packets, 7'001U);
}

// Fractions of a nanosecond accumulate.
TEST(SendGate, keeps_a_rate_with_fractional_nanosecond_intervals) {
  constexpr uint64_t kOdd = 99'999'937'000;  // 80.00005 ns per packet
  SendGate gate = paced(kOdd, Nanos{0});
  uint64_t packets = 0;
  for (int turn = 1; turn <= 100'000; ++turn) packets += row(gate, turn * 1us);
  const double expected = 0.1 * kOdd / 8 / kPayload;
  EXPECT_NEAR(static_cast<double>(packets), expected, expected * 1e-5);
}

TEST(SendGate, window_admits_one_packet_when_none_is_in_flight) {
  SendGate gate;
  gate.window = 10;
  gate.overhead = 82;
  EXPECT_TRUE(gate.admits(1us, 0, kPayload));
  EXPECT_FALSE(gate.admits(1us, 1, kPayload));
  gate.window = 2'000;
  EXPECT_TRUE(gate.admits(1us, 2'000 - 1'082, kPayload));
  EXPECT_FALSE(gate.admits(1us, 2'001 - 1'082, kPayload));
  EXPECT_EQ(gate.opens_at(), kNever) << "an acknowledgement opens it, not time";
}

}  // namespace
}  // namespace roci::test
