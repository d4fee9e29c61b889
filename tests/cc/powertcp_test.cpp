// PowerTCP: the control law of the paper (NSDI 2022, algorithm 1), its properties, and telemetry that is missing, wraps
// or is impossible.
#include <cmath>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "cc/telemetry_flow.hpp"

namespace roci::test {
namespace {

// T is 8.4 us. HostBw * T is 52500 bytes, beta of N = 100 is 525 bytes, b * T of a link is 105000 bytes.
class PowerTcp : public TelemetryFlow {
 public:
  explicit PowerTcp(const Values& values = {}) : TelemetryFlow("powertcp", values) {}

  [[nodiscard]] double power() { return member(0); }
  [[nodiscard]] double window() { return member(1); }
  [[nodiscard]] double old() { return member(3); }  // w_old of the last ACK
  void set_queue(uint32_t bytes, uint32_t hop = 0) { path.hop[hop].queue_bytes = bytes; }
};

TEST(PowerTcp, starts_at_line_rate_with_bandwidth_delay_product) {  // 3.3
  PowerTcp flow;
  EXPECT_EQ(flow.decision.window, 52'500U);
  EXPECT_EQ(flow.decision.rate, kPort);
  EXPECT_EQ(flow.state_name(), "blind");
}

// Computed by hand. A link sends 12.5 bytes per ns, so the divisor b * b * T is 1312500. w_old is 52500 throughout.
TEST(PowerTcp, follows_example_of_control_law) {
  PowerTcp flow;
  flow.first();
  // 25000 bytes were sent in 2000 ns while the queue grew by 10500: current 17.75, voltage 115500, power 2050125.
  // Normalized: 1.562. Smoothed: (6400 * 1 + 2000 * 1.562) / 8400.
  flow.set_queue(10'500);
  flow.tell_after(kTick, kFull);
  EXPECT_NEAR(flow.power(), 9524.0 / 8400, 1e-12);
  EXPECT_NEAR(flow.window(), 0.9 * (52'500 * 8400 / 9524.0 + 525) + 0.1 * 52'500, 1e-9);
  EXPECT_NEAR(flow.window(), 47'396.166527, 1e-6);
  EXPECT_EQ(flow.decision.window, 47'396U);
  EXPECT_EQ(flow.decision.rate, static_cast<uint64_t>(flow.window() * 8e9 / 8400));  // P6
  EXPECT_EQ(flow.reason_name(), "reduced");
  EXPECT_EQ(flow.state_name(), "above_target");
  // The queue does not change: current 12.5, normalized 1.1.
  flow.tell_after(kTick, kFull);
  EXPECT_NEAR(flow.power(), 1.1257596372, 1e-10);
  EXPECT_NEAR(flow.window(), 47'183.776001, 1e-6);
  // The queue drains: current (25000 - 10500) / 2000 = 7.25, voltage 105000, normalized 0.58.
  flow.set_queue(0);
  flow.tell_after(kTick, kFull);
  EXPECT_NEAR(flow.power(), 0.9958168664, 1e-10);
  EXPECT_EQ(flow.decision.window, 52'500U) << "the maximum";
  EXPECT_EQ(flow.reason_name(), "raised");
  EXPECT_EQ(flow.state_name(), "below_target");
  EXPECT_EQ(flow.old(), 52'500);
}

// Equilibrium: power 1. A window of 26250 approaches 26250 + beta within a round trip, and not more.
TEST(PowerTcp, full_link_without_queue_adds_only_beta_per_round_trip) {
  PowerTcp flow;
  flow.call(ROCI_CC_ON_TIMEOUT);
  flow.first();
  flow.tell_after(kTick, kFull);
  EXPECT_NEAR(flow.power(), 1, 1e-12);
  EXPECT_NEAR(flow.window(), 0.9 * 26'775 + 0.1 * 26'250, 1e-9);
  flow.tell_after(kTick, kFull);
  EXPECT_NEAR(flow.window(), 0.9 * 26'775 + 0.1 * 26'722.5, 1e-9);
  for (int i = 0; i < 40; ++i) flow.tell_after(kTick, kFull);
  EXPECT_NEAR(flow.window(), 26'775, 1e-9);
  EXPECT_EQ(flow.old(), 26'250) << "no byte is acknowledged that was sent later";
  flow.event.next = flow.event.acked + 80 * kPayload;
  flow.tell_after(kTick, kFull, 60);
  EXPECT_NEAR(flow.old(), 26'775, 1e-9);
}

TEST(PowerTcp, growing_queue_reduces_window_more_than_standing_queue_and_draining_queue_less) {  // 3.2
  double window[3] = {};
  for (const int growth : {-1, 0, 1}) {
    PowerTcp flow;
    flow.set_queue(static_cast<uint32_t>(20'000 - growth * 10'000));
    flow.first();
    flow.set_queue(20'000);
    flow.tell_after(kTick, kFull);
    window[growth + 1] = flow.window();
  }
  EXPECT_EQ(window[0], 52'500) << "power 0.6 * 1.19";
  EXPECT_LT(window[1], window[0]);
  EXPECT_LT(window[2], window[1]);
}

TEST(PowerTcp, fills_free_bandwidth_within_one_update) {  // 3.5: the exact transmission rate is known
  PowerTcp flow;
  flow.call(ROCI_CC_ON_TIMEOUT);
  flow.call(ROCI_CC_ON_TIMEOUT);
  flow.call(ROCI_CC_ON_TIMEOUT);  // 6562.5
  flow.first();
  flow.tell_after(5 * kTick, kFull);  // more than T, so G is that of this sample: 0.2
  EXPECT_NEAR(flow.power(), 0.2, 1e-12);
  EXPECT_NEAR(flow.window(), 0.9 * (6562.5 * 5 + 525) + 0.1 * 6562.5, 1e-9);
}

// The powers of the other hops are larger, their normalized powers are smaller.
// A port that drains its queue sends, although nothing arrives. Without a queue the measured current counts.
TEST(PowerTcp, current_of_port_with_queue_has_a_minimum) {
  for (const double least : {0.0, 0.5}) {
    PowerTcp flow({{"least_current", least}});
    flow.set_queue(125'000);
    flow.first();
    flow.set_queue(0);
    flow.tell_after(5 * kTick, 5 * kFull);
    EXPECT_NEAR(flow.power(), least, 1e-12);
    flow.tell_after(5 * kTick, kFull);
    EXPECT_NEAR(flow.power(), 0.2, 1e-12);
  }
}

TEST(PowerTcp, uses_hop_with_maximum_normalized_power) {  // P20 to P22
  PowerTcp flow;
  flow.hops(3);
  flow.path.hop[1].rate = kLink / 4;
  flow.tell();
  flow.pass(5 * kTick, 0);
  flow.path.hop[0].sent_units += 2 * kFull;  // 0.4
  flow.path.hop[1].sent_units += kFull;      // 0.8 of a quarter of the rate
  flow.path.hop[2].sent_units += 3 * kFull;  // 0.6
  flow.tell();
  EXPECT_NEAR(flow.power(), 0.8, 1e-12);
}

// Compared with all windows of the flow. The stored window is at most a quarter of a round trip older, 13 packets.
TEST(PowerTcp, old_window_is_that_of_the_acknowledged_packets_transmission) {  // equation 7
  PowerTcp flow({{"gamma", 1}});
  std::mt19937_64 rng(3);
  flow.first();
  std::vector<std::pair<uint64_t, double>> all = {{0, 52'500}};  // sequence and window of packets from it on
  std::set<double> used;
  for (int i = 0; i < 400; ++i) {
    flow.set_queue(static_cast<uint32_t>(rng() % 50'000));
    flow.event.next += kPayload;
    flow.tell_after(160, 250);
    const uint64_t acked = flow.event.acked;
    bool found = false;
    for (const auto& [from, window] : all)
      found |= window == flow.old() && from < acked && (from == 0 || from + 14 * kPayload >= acked);
    ASSERT_TRUE(found || acked <= 53 * kPayload) << i << ' ' << flow.old();
    used.insert(flow.old());
    all.emplace_back(flow.event.next, flow.window());
  }
  EXPECT_GE(used.size(), 25U) << "four per round trip";
}

// Each ACK finds half as much more in flight, so that each would store a window.
TEST(PowerTcp, number_of_stored_windows_is_limited) {
  PowerTcp flow;
  flow.first();
  for (int i = 0; i < 20; ++i) {
    flow.event.next += flow.event.next / 2;
    flow.set_queue(static_cast<uint32_t>(1000 * i));
    flow.tell_after(kTick, kFull);
    EXPECT_NE(flow.reason_name(), "path_changed") << i;
    EXPECT_NE(flow.reason_name(), "first_sample") << i;
    EXPECT_EQ(flow.old(), 52'500) << i;
  }
  flow.event.next += kPayload;
  flow.event.acked = flow.event.next - 2 * kPayload;
  flow.tell_after(kTick, kFull);
  EXPECT_LT(flow.old(), 52'500) << "the last one that was stored";
}

TEST(PowerTcp, stores_old_window_once_per_round_trip_if_configured) {  // P7, 3.3
  PowerTcp flow({{"stored_windows", 0}});
  flow.first();  // 52 packets were sent, 1 is acknowledged
  flow.set_queue(50'000);
  for (int i = 2; i <= 52; ++i) {
    flow.tell_after(160, 250);
    EXPECT_EQ(flow.old(), 52'500) << i;
  }
  flow.event.next = 90 * kPayload;
  flow.tell_after(160, 250);
  const double once = flow.old();
  EXPECT_LT(once, 52'500);
  EXPECT_EQ(once, flow.window());
  for (int i = 54; i <= 90; ++i) EXPECT_EQ((flow.tell_after(160, 250), flow.old()), once);
  flow.tell_after(160, 250);
  EXPECT_LT(flow.old(), once);
}

TEST(PowerTcp, beta_is_set_directly_or_by_number_of_flows) {  // 3.3
  for (const auto& [values, beta] : {std::pair<Driver::Values, double>{{{"flows", 25}}, 2100},
                                     {{{"beta", 77}}, 77},
                                     {{{"beta", 77}, {"flows", 25}}, 77}}) {
    Driver::Values all = values;
    all["gamma"] = 1;
    PowerTcp flow(all);
    flow.call(ROCI_CC_ON_TIMEOUT);
    flow.first();
    flow.tell_after(kTick, kFull);
    EXPECT_NEAR(flow.window(), 26'250 + beta, 1e-9);
  }
}

TEST(PowerTcp, target_divides_power) {
  PowerTcp flow({{"target", 0.8}, {"gamma", 1}, {"beta", 1}});
  flow.first();
  flow.tell_after(kTick, kFull);
  EXPECT_NEAR(flow.window(), 52'500 * 0.8 + 1, 1e-9);
  EXPECT_EQ(flow.state_name(), "above_target");
}

// ------------------------------------------------------------------------------- telemetry that is missing or changes

TEST(PowerTcp, counters_and_times_wrap) {
  PowerTcp plain, wrapping;
  wrapping.path.hop[0].time_ns = UINT32_MAX - 3 * kTick / 2;
  wrapping.path.hop[0].sent_units = UINT32_MAX - kFull / 2;
  plain.first(), wrapping.first();
  for (int i = 0; i < 4; ++i) {
    for (PowerTcp* flow : {&plain, &wrapping}) {
      flow->set_queue(static_cast<uint32_t>(5000 + 3000 * i));
      flow->tell_after(kTick, kFull);
    }
    EXPECT_NE(wrapping.reason_name(), "implausible") << i;
    EXPECT_EQ(wrapping.window(), plain.window()) << i;
    EXPECT_EQ(wrapping.power(), plain.power()) << i;
  }
  EXPECT_LT(wrapping.path.hop[0].time_ns, UINT32_MAX / 2);
  EXPECT_LT(wrapping.path.hop[0].sent_units, UINT32_MAX / 2);
}

TEST(PowerTcp, path_change_stores_reference_without_changing_window) {
  for (const int what : {0, 1, 2, 3}) {
    PowerTcp flow;
    flow.hops(2);
    flow.first();
    flow.set_queue(10'000);
    flow.tell_after(kTick, kFull);
    const double before = flow.window(), power = flow.power();
    if (what == 0) flow.hops(3);
    if (what == 1) flow.hops(1);
    if (what == 2) flow.path.hop[1].node = 77;
    if (what == 3) flow.path.hop[0].port = 78;
    flow.set_queue(1'000'000);
    flow.tell_after(kTick, 9 * kFull);
    EXPECT_EQ(flow.reason_name(), "path_changed") << what;
    EXPECT_EQ(flow.window(), before) << what;
    EXPECT_EQ(flow.power(), power) << what;
    flow.tell_after(5 * kTick, 4 * kFull);
    EXPECT_EQ(flow.reason_name(), "reduced") << what;
    EXPECT_NEAR(flow.power(), 0.8 * (1 + 1e6 / 105'000), 1e-9)
        << what << ": compared with the new path's sample";
  }
}

TEST(PowerTcp, ignores_acks_without_telemetry_or_time_difference_or_rate) {
  PowerTcp flow;
  flow.first();
  flow.set_queue(20'000);
  flow.tell_after(kTick, kFull);
  const double before = flow.window();
  for (int i = 0; i < 100; ++i) flow.ack();
  flow.set_queue(90'000);
  flow.tell();
  EXPECT_EQ(flow.reason_name(), "nothing") << "the same time";
  flow.path.hop[0].rate = 0;
  flow.tell_after(kTick, kFull);
  EXPECT_EQ(flow.reason_name(), "nothing") << "no rate";
  flow.path.hops = 0;
  flow.tell();
  EXPECT_EQ(flow.reason_name(), "nothing") << "no hops";
  EXPECT_EQ(flow.window(), before);
}

TEST(PowerTcp, ignores_int_responses_of_switches) {
  PowerTcp flow;
  flow.first();
  flow.tell_after(kTick, kFull);
  const double before = flow.window();
  const roci_cc_path usual = flow.path;
  flow.path.flags = ROCI_CC_PATH_FROM_SWITCH;
  flow.path.hop[0].node = 9;
  flow.set_queue(5'000'000);
  flow.event.path = &flow.path;
  flow.call(ROCI_CC_ON_TELEMETRY);
  EXPECT_EQ(flow.window(), before);
  flow.path = usual;
  flow.tell_after(kTick, kFull);
  EXPECT_NE(flow.reason_name(), "path_changed");
}

TEST(PowerTcp, ignores_hops_with_impossible_values) {
  struct Case {
    const char* what;
    void (*change)(roci_cc_hop&);
  };
  const Case cases[] = {
      {"time goes back", [](roci_cc_hop& hop) { hop.time_ns -= 2 * kTick; }},
      {"more than the link carries", [](roci_cc_hop& hop) { hop.sent_units += kFull / 5 + 2 * 1048 / 8; }},
      {"a queue of more than 1 s", [](roci_cc_hop& hop) { hop.queue_bytes = 0xffffffff; }},
      {"a rate above 10 Tb/s", [](roci_cc_hop& hop) { hop.rate = uint64_t{1} << 63; }},
  };
  for (const Case& each : cases) {
    PowerTcp flow;
    flow.first();
    flow.tell_after(kTick, kFull);
    const double before = flow.window();
    const roci_cc_hop good = flow.path.hop[0];
    flow.pass(kTick, kFull);
    each.change(flow.path.hop[0]);
    flow.tell();
    EXPECT_EQ(flow.reason_name(), "implausible") << each.what;
    EXPECT_EQ(flow.window(), before) << each.what;
    flow.path.hop[0] = good;
    flow.pass(5 * kTick, 4 * kFull);
    flow.tell();
    EXPECT_NEAR(flow.power(), 0.8, 1e-12) << each.what << ": compared with the last possible sample";
  }
}

TEST(PowerTcp, discards_power_from_before_a_pause) {
  PowerTcp flow;
  flow.first();
  flow.tell_after(5 * kTick, kFull);
  EXPECT_NEAR(flow.power(), 0.2, 1e-9);
  const uint64_t before = flow.decision.window;
  flow.tell_after(8'500'000, 1);
  EXPECT_EQ(flow.reason_name(), "first_sample");
  EXPECT_EQ(flow.decision.window, before);
  EXPECT_EQ(flow.power(), 1);
}

TEST(PowerTcp, halves_window_on_timeout) {
  PowerTcp flow;
  flow.first();
  flow.call(ROCI_CC_ON_TIMEOUT);
  EXPECT_EQ(flow.decision.window, 26'250U);
  EXPECT_EQ(flow.old(), 26'250);
  EXPECT_EQ(flow.reason_name(), "timeout");
  flow.tell_after(kTick, kFull);
  EXPECT_EQ(flow.reason_name(), "first_sample");
}

TEST(PowerTcp, window_stays_between_minimum_rate_and_maximum_window) {
  PowerTcp flow({{"min_rate", 1e9}, {"beta", 1}});
  flow.first();
  for (int i = 0; i < 100; ++i) {
    flow.set_queue(900'000'000);
    flow.tell_after(kTick, kFull, 60);
  }
  EXPECT_EQ(flow.decision.window, 1050U);  // 1 Gb/s for 8.4 us
  EXPECT_EQ(flow.decision.rate, 1'000'000'000U);
  flow.set_queue(0);
  for (int i = 0; i < 100; ++i) flow.tell_after(10 * kTick, 0);
  EXPECT_EQ(flow.decision.window, 52'500U);
  EXPECT_EQ(flow.decision.rate, kPort);
  EXPECT_EQ(PowerTcp({{"max_window", 10'000}}).decision.window, 10'000U);
  PowerTcp large({{"max_window", 60'000}, {"gamma", 1}});
  EXPECT_EQ(large.decision.window, 52'500U);
  large.first();
  large.tell_after(10 * kTick, kFull);
  EXPECT_EQ(large.decision.window, 60'000U);
  EXPECT_EQ(large.decision.rate, kPort) << "not above the line rate";
}

TEST(PowerTcp, longer_queue_at_same_history_never_gives_larger_window) {
  std::mt19937_64 rng(8);
  for (int round = 0; round < 500; ++round) {
    PowerTcp shorter, longer;
    shorter.first(), longer.first();
    for (int i = 0; i < 5; ++i) {
      const auto nanos = static_cast<uint32_t>(50 + rng() % 8000);
      const auto units = static_cast<uint32_t>(uint64_t{nanos} * kFull / 2000 * (rng() % 101) / 100);
      const auto queue = static_cast<uint32_t>(rng() % 100'000);
      shorter.set_queue(queue);
      longer.set_queue(queue + (i == 4 ? static_cast<uint32_t>(rng() % 50'000) : 0));
      shorter.tell_after(nanos, units), longer.tell_after(nanos, units);
    }
    ASSERT_LE(longer.window(), shorter.window() + 1e-9);
    ASSERT_GE(longer.power(), shorter.power() - 1e-12);
  }
}

TEST(PowerTcp, requires_base_rtt_or_t) {
  for (const char* name : {"powertcp", "theta_powertcp"}) {
    const roci_cc_plugin& of = plugin(name);
    Driver driver(of);
    roci_cc_flow flow = Driver::usual_flow();
    EXPECT_EQ(of.check(&flow, driver.parameters.data()), nullptr);
    flow.base_rtt_ns = 0;
    EXPECT_STREQ(of.check(&flow, driver.parameters.data()), "t: 0 requires base_rtt");
    driver.parameters[driver.index_of("t")] = 4200;
    EXPECT_EQ(of.check(&flow, driver.parameters.data()), nullptr);
  }
}

}  // namespace
}  // namespace roci::test
