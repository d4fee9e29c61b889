// LDCP, the window variant: requirements L6 to L48 as far as they concern the sender, and the project's additional
// rules.
#include <cmath>
#include <cstring>
#include <random>
#include <set>
#include <utility>

#include "cc/driver.hpp"

namespace roci::test {
namespace {

// Packets of the usual flow: 52500 bytes per base round-trip time, rounded up to packets.
constexpr uint32_t kWhole = 51;

class Ldcp : public Driver {
 public:
  // As in the draft: without jitter, and growing even if the window is not used.
  explicit Ldcp(Values values = {}, const roci_cc_flow& on = usual_flow())
      : Driver(plugin("ldcp"), with_draft(std::move(values)), on) {}

  // Enters the stable stage with this window, which must be an integer.
  Ldcp& stable(uint32_t window) {
    ack(window);
    loss();
    EXPECT_EQ(decision.window, window * kPacket);
    return *this;
  }
  const roci_cc_decision& loss() {
    event.losses = 1;
    event.next = event.acked + 100 * kPayload;
    return call(ROCI_CC_ON_LOSS);
  }
  // cw: the first member of the state.
  [[nodiscard]] double window() {
    double cw = 0;
    std::memcpy(&cw, state(), sizeof cw);
    return cw;
  }

 private:
  static Values with_draft(Values values) {
    values.try_emplace("use_before_growth", 0);
    values.try_emplace("jitter", 0);
    return values;
  }
};

// ------------------------------------------------------------------------------------------------- fast start

TEST(Ldcp, starts_with_window_of_one_bdp) {  // L24
  Ldcp flow;
  EXPECT_EQ(flow.decision.window, kWhole * kPacket);
  EXPECT_EQ(flow.state_name(), "fast_start");
  EXPECT_EQ(flow.decision.gap_ns, 0U);
  EXPECT_EQ(Ldcp({{"initial_window", 20}}).decision.window, 20 * kPacket);
  EXPECT_EQ(Ldcp({{"max_window", 10}}).decision.window, 10 * kPacket);
}

TEST(Ldcp, sends_not_ect_until_the_first_ack) {  // L29, L48
  Ldcp flow;
  EXPECT_GE(flow.decision.not_ect_below, kWhole * kPayload);
  flow.rtt(5000);  // not an ACK
  EXPECT_GE(flow.decision.not_ect_below, kWhole * kPayload);
  flow.ack();
  EXPECT_EQ(flow.decision.not_ect_below, 0U);
  EXPECT_EQ(flow.state_name(), "fast_start");
}

TEST(Ldcp, loss_in_fast_start_sets_window_to_acknowledged_packets) {  // L31, L46
  Ldcp flow;
  for (int i = 0; i < 7; ++i) flow.ack();
  flow.loss();
  EXPECT_EQ(flow.decision.window, 7 * kPacket);
  EXPECT_EQ(flow.state_name(), "stable");
  EXPECT_EQ(flow.reason_name(), "loss_in_fast_start");
  EXPECT_EQ(flow.decision.not_ect_below, 0U);
}

TEST(Ldcp, loss_without_acks_sets_window_to_one_packet) {
  Ldcp flow;
  flow.loss();
  EXPECT_EQ(flow.decision.window, kPacket);
  EXPECT_EQ(flow.decision.gap_ns, 0U);
  Ldcp silent;
  silent.event.timeouts = 1;
  silent.call(ROCI_CC_ON_TIMEOUT);
  EXPECT_EQ(silent.decision.window, kPacket);
  EXPECT_EQ(silent.decision.not_ect_below, 0U);
}

TEST(Ldcp, applies_ack_before_loss_of_one_event) {
  Ldcp flow;
  flow.event.acked = 5 * kPayload;
  flow.event.acked_packets = 5;
  flow.event.acked_bytes = 5 * kPacket;
  flow.event.losses = 1;
  flow.call(ROCI_CC_ON_ACK | ROCI_CC_ON_LOSS);
  EXPECT_EQ(flow.decision.window, 5 * kPacket);
}

TEST(Ldcp, keeps_initial_window_if_all_of_it_is_acknowledged) {  // L47
  Ldcp flow;
  for (uint32_t i = 1; i < kWhole; ++i) flow.ack();
  EXPECT_EQ(flow.state_name(), "fast_start");
  flow.ack();
  EXPECT_EQ(flow.state_name(), "stable");
  EXPECT_EQ(flow.reason_name(), "initial_window_arrived");
  EXPECT_EQ(flow.decision.window, kWhole * kPacket);
}

TEST(Ldcp, packets_after_initial_window_count_for_stable_stage) {
  Ldcp one_by_one, at_once;
  for (uint32_t i = 0; i < kWhole; ++i) one_by_one.ack();
  for (int i = 0; i < 3; ++i) one_by_one.ack(1, 1);
  at_once.ack(kWhole + 3, 40);  // at most 3 of the 40 marks can belong to packets after the window
  EXPECT_EQ(at_once.decision.window, one_by_one.decision.window);
  EXPECT_EQ(at_once.window(), kWhole - 1.5);
}

TEST(Ldcp, short_flow_stays_in_fast_start) {  // L44
  Ldcp flow;
  for (int i = 0; i < 30; ++i) flow.ack();
  flow.wait(1'000'000'000);
  EXPECT_EQ(flow.state_name(), "fast_start");
  EXPECT_EQ(flow.decision.window, kWhole * kPacket);
}

TEST(Ldcp, fast_start_counts_bytes_of_small_packets) {
  Ldcp flow;
  for (uint32_t i = 0; i < kWhole; ++i) {
    flow.event.acked += 16;
    flow.event.acked_packets = 1;
    flow.event.acked_bytes = 96;
    flow.call(ROCI_CC_ON_ACK);
  }
  EXPECT_EQ(flow.state_name(), "fast_start");
  flow.loss();
  EXPECT_EQ(flow.decision.window, 51 * 96 / 1048 * kPacket);  // the payload of 4 packets
}

// ----------------------------------------------------------------------------------------------- stable stage

// Reference, section 6: alpha 1, beta 1/2, cw 52.
TEST(Ldcp, follows_vector_above_one_packet) {  // L16
  Ldcp up({{"alpha", 1}, {"initial_window", 60}}), down({{"alpha", 1}, {"initial_window", 60}});
  EXPECT_DOUBLE_EQ((up.stable(52).ack(), up.window()), 52.01923076923077);
  EXPECT_DOUBLE_EQ((down.stable(52).ack(1, 1), down.window()), 51.5);
  EXPECT_EQ(down.decision.window, 53972U);  // 51.5 * 1048
}

// Reference, section 6: alpha = gamma = 1/4, beta = eta = 1/2, from 1.3.
TEST(Ldcp, follows_vector_to_minimum_window_and_back_above_one_packet) {  // L21 to L23
  Ldcp flow({{"alpha", 0.25}, {"gamma", 0.25}});
  flow.stable(1);
  const double from = 1.3;
  std::memcpy(flow.state(), &from, sizeof from);
  const double down[] = {0.8, 0.4, 0.25, 0.25, 0.25};
  for (const double each : down) EXPECT_NEAR((flow.ack(1, 1), flow.window()), each, 1e-12);
  const double up[] = {0.5, 0.75, 1.0, 1.25, 1.45, 1.622414, 1.776505, 1.917231};
  for (const double each : up) EXPECT_NEAR((flow.ack(), flow.window()), each, 5e-7);
}

TEST(Ldcp, applies_marked_and_unmarked_packets_of_one_ack) {  // L17
  Ldcp flow({{"initial_window", 40}});
  flow.stable(20);
  flow.ack(6, 2);
  EXPECT_DOUBLE_EQ(flow.window(), 20 + 4 * 0.125 / 20 - 2 * 0.5);
  EXPECT_EQ(flow.reason_name(), "marked");
}

TEST(Ldcp, updates_window_on_each_ack) {  // L18
  Ldcp flow({{"initial_window", 40}});
  flow.stable(20);
  for (int i = 1; i <= 10; ++i) EXPECT_DOUBLE_EQ((flow.ack(1, 1), flow.window()), 20 - 0.5 * i);
}

TEST(Ldcp, coalesced_marks_equal_single_marks) {
  for (const uint32_t from : {1U, 2U, 5U, 30U}) {
    Ldcp single, together;
    single.stable(from), together.stable(from);
    for (uint32_t i = 0; i < from + 3; ++i) single.ack(1, 1);
    together.ack(from + 3, from + 3);
    EXPECT_DOUBLE_EQ(single.window(), together.window()) << from;
  }
}

TEST(Ldcp, clamps_growing_window_at_one_packet) {  // L23
  Ldcp flow({{"gamma", 0.4}, {"alpha", 0.25}});
  flow.stable(1).ack(1, 1);  // 0.5
  EXPECT_DOUBLE_EQ((flow.ack(), flow.window()), 0.9);
  EXPECT_DOUBLE_EQ((flow.ack(), flow.window()), 1.0);  // not 1.3
  EXPECT_DOUBLE_EQ((flow.ack(), flow.window()), 1.25);
  EXPECT_EQ(flow.state_name(), "stable");
}

TEST(Ldcp, decrease_rules_agree_at_one_packet_with_default_values) {  // A2
  Ldcp above, below;
  above.stable(1), below.stable(1);
  const double just = std::nextafter(1.0, 0.0);
  std::memcpy(below.state(), &just, sizeof just);
  EXPECT_NEAR((above.ack(1, 1), above.window()), (below.ack(1, 1), below.window()), 1e-12);
}

TEST(Ldcp, window_below_one_packet_sets_gap_of_rtt_over_window) {  // L20
  Ldcp flow({{"subpacket_rtt", 0}});
  flow.stable(1).ack(1, 1);
  EXPECT_EQ(flow.state_name(), "subpacket");
  EXPECT_EQ(flow.decision.window, kPacket);
  EXPECT_EQ(flow.decision.gap_ns, 8400U);  // 4200 / 0.5
  flow.ack(1, 1), flow.ack(1, 1), flow.ack(1, 1);
  EXPECT_EQ(flow.decision.gap_ns, 33600U);  // 4200 * 8: gamma is the minimum window (L22)
  for (int i = 0; i < 7; ++i) flow.ack();
  EXPECT_EQ(flow.decision.gap_ns, 0U);
  EXPECT_EQ(flow.state_name(), "stable");
}

TEST(Ldcp, gap_uses_measured_rtt) {  // A1
  Ldcp flow;
  flow.rtt(10'000);
  flow.stable(1).ack(1, 1);
  EXPECT_EQ(flow.decision.gap_ns, 20'000U);
  flow.rtt(18'000);
  EXPECT_EQ(flow.decision.gap_ns, 36'000U);
  flow.rtt(1);  // below the base round-trip time: ignored
  EXPECT_EQ(flow.decision.gap_ns, 8400U);
}

TEST(Ldcp, jitter_varies_gap_per_flow) {
  double sum = 0;
  std::set<uint64_t> gaps;
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    roci_cc_flow on = Driver::usual_flow();
    on.seed = seed;
    Ldcp flow({{"jitter", 0.25}}, on);
    flow.stable(1).ack(1, 1);
    EXPECT_GE(flow.decision.gap_ns, 6300U);
    EXPECT_LE(flow.decision.gap_ns, 10500U);
    sum += static_cast<double>(flow.decision.gap_ns);
    gaps.insert(flow.decision.gap_ns);
  }
  EXPECT_NEAR(sum / 1000, 8400, 150);
  EXPECT_GT(gaps.size(), 700U);
}

TEST(Ldcp, halves_window_once_per_window_on_loss) {
  Ldcp flow({{"initial_window", 40}});
  flow.stable(20);
  flow.event.next = flow.event.acked + 20 * kPayload;
  flow.call(ROCI_CC_ON_LOSS);  // part of the burst whose first loss ended fast start
  EXPECT_EQ(flow.decision.window, 20 * kPacket);
  flow.event.acked = flow.event.next + 100 * kPayload;
  flow.loss();
  EXPECT_EQ(flow.decision.window, 10 * kPacket);
  EXPECT_EQ(flow.reason_name(), "loss");
  flow.loss();
  EXPECT_EQ(flow.decision.window, 10 * kPacket);
}

TEST(Ldcp, timeouts_reduce_window_to_one_packet_then_halve_it) {
  Ldcp flow({{"initial_window", 40}});
  flow.stable(20);
  EXPECT_EQ((flow.call(ROCI_CC_ON_TIMEOUT), flow.window()), 1);
  EXPECT_EQ((flow.call(ROCI_CC_ON_TIMEOUT), flow.window()), 0.5);
  for (int i = 0; i < 9; ++i) flow.call(ROCI_CC_ON_TIMEOUT);
  EXPECT_EQ(flow.window(), 0.125);
}

TEST(Ldcp, does_not_grow_underused_window) {
  Driver flow(plugin("ldcp"), {{"initial_window", 40}});
  flow.ack(20);
  flow.call(ROCI_CC_ON_LOSS);
  flow.event.in_flight = 8 * kPacket;
  EXPECT_EQ(flow.ack().window, 20 * kPacket);  // 9 of 20 packets were in flight
  flow.event.in_flight = 9 * kPacket;
  EXPECT_GT(flow.ack().window, 20 * kPacket);
  flow.event.in_flight = 0;
  EXPECT_LT(flow.ack(1, 1).window, 20 * kPacket) << "marks count all the same";
}

// ------------------------------------------------------------------------------------------------------ pauses

TEST(Ldcp, restarts_fast_start_after_pause_with_twice_the_window) {  // L45
  Ldcp flow({{"initial_window", 40}});
  EXPECT_EQ(flow.decision.idle_ns, 42'000U);
  flow.stable(12);
  flow.event.next = flow.event.acked = 500 * kPayload;
  flow.call(ROCI_CC_ON_RESUME);
  EXPECT_EQ(flow.state_name(), "fast_start");
  EXPECT_EQ(flow.decision.window, 24 * kPacket);
  EXPECT_EQ(flow.decision.not_ect_below, 524 * kPayload);
  for (int i = 0; i < 24; ++i) flow.ack();
  EXPECT_EQ(flow.state_name(), "stable");
  EXPECT_EQ(flow.decision.window, 24 * kPacket);
}

TEST(Ldcp, fast_start_after_pause_is_limited_to_initial_window) {
  Ldcp flow({{"initial_window", 20}});
  flow.stable(12).call(ROCI_CC_ON_RESUME);
  EXPECT_EQ(flow.decision.window, 20 * kPacket);
  Ldcp first({{"initial_window", 20}});
  first.ack(3);
  first.call(ROCI_CC_ON_RESUME);
  EXPECT_EQ(first.decision.window, 20 * kPacket);
}

TEST(Ldcp, keeps_window_below_one_packet_after_a_pause) {
  Ldcp flow;
  flow.stable(1).ack(2, 2);
  EXPECT_EQ(flow.window(), 0.25);
  flow.call(ROCI_CC_ON_RESUME);
  EXPECT_EQ(flow.window(), 0.25);
  EXPECT_EQ(flow.decision.not_ect_below, 0U);
  EXPECT_EQ(Ldcp({{"idle_rtts", 0}}).decision.idle_ns, 0U);
}

// -------------------------------------------------------------------------------------------------- properties

TEST(Ldcp, more_marks_never_give_a_larger_window) {
  std::mt19937_64 rng(3);
  for (int round = 0; round < 2000; ++round) {
    Ldcp less, more;
    const uint32_t from = 1 + static_cast<uint32_t>(rng() % 40);
    less.stable(from), more.stable(from);
    const uint32_t before = static_cast<uint32_t>(rng() % 60);
    less.ack(before, before), more.ack(before, before);
    const uint32_t packets = 1 + static_cast<uint32_t>(rng() % 60);
    const uint32_t marks = static_cast<uint32_t>(rng() % packets);
    less.ack(packets, marks), more.ack(packets, marks + 1);
    ASSERT_LE(more.window(), less.window()) << from << ' ' << before << ' ' << packets << ' ' << marks;
  }
}

TEST(Ldcp, window_stays_between_gamma_and_maximum_for_any_ack) {
  std::mt19937_64 rng(4);
  Ldcp flow({{"max_window", 100}});
  flow.stable(10);
  for (int i = 0; i < 20'000; ++i) {
    const auto packets = static_cast<uint32_t>(rng() >> (rng() % 64));
    const double before = flow.window();
    flow.ack(packets, rng() % 2 == 0 ? 0 : static_cast<uint32_t>(rng() >> (rng() % 64)));
    ASSERT_GE(flow.window(), 0.125);
    ASSERT_LE(flow.window(), 100);
    if (before >= 1) {
      ASSERT_LE(flow.window(), before + 0.125 + 1e-9);
    }
  }
}

// The mean that A2 derives: cw = alpha / beta * (1 - p) / p for a share p of marked packets, above and below one
// packet. 1/4 * 0.98 / 0.02 = 12.25; 1/4 * 0.5 / 0.5 = 0.25.
TEST(Ldcp, converges_to_equilibrium_window) {
  for (const auto& [p, expected] : {std::pair{0.02, 12.25}, {0.5, 0.25}}) {
    std::mt19937_64 rng(5);
    Ldcp flow({{"gamma", 0.125}});
    flow.stable(30);
    double sum = 0;
    const int packets = 400'000;
    for (int i = 0; i < packets; ++i) {
      flow.ack(1, static_cast<double>(rng() >> 11) * 0x1p-53 < p ? 1 : 0);
      if (i >= packets / 4) sum += flow.window();
    }
    EXPECT_NEAR(sum / (packets * 0.75), expected, expected * 0.35) << p;
  }
}

TEST(Ldcp, requires_base_rtt_for_derived_values) {
  const roci_cc_plugin& ldcp = plugin("ldcp");
  std::vector<double> standard = Driver(ldcp).parameters;
  roci_cc_flow flow = Driver::usual_flow();
  EXPECT_EQ(ldcp.check(&flow, standard.data()), nullptr);
  flow.base_rtt_ns = 0;
  EXPECT_STREQ(ldcp.check(&flow, standard.data()), "initial_window: 0 requires base_rtt");
  standard[0] = 20;
  EXPECT_EQ(ldcp.check(&flow, standard.data()), nullptr);
  flow.provides = ROCI_CC_NEEDS_ACK | ROCI_CC_NEEDS_CE_COUNT;
  EXPECT_STREQ(ldcp.check(&flow, standard.data()),
               "base_rtt or round-trip time samples are required for windows below one packet");
}

}  // namespace
}  // namespace roci::test
