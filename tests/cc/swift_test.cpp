// Swift: vectors, rules of the paper's algorithm 1, and known defects of public implementations.
#include <cmath>
#include <cstring>
#include <random>

#include "cc/driver.hpp"

namespace roci::test {
namespace {

class Swift : public Driver {
 public:
  // A target of 25 us without additional terms, 10 packets, growing even if the window is not used.
  explicit Swift(Values values = {}, const roci_cc_flow& on = usual_flow())
      : Driver(plugin("swift"), with_vectors(std::move(values)), on, 1'000'000) {}

  // Packets are acknowledged one round trip after the previous ones, with these delays in us.
  const roci_cc_decision& acked(double network, double host = 0, uint32_t packets = 1) {
    event.now_ns += static_cast<uint64_t>((network + host) * 1000) + 1;
    return acked_at_once(network, host, packets);
  }
  const roci_cc_decision& acked_at_once(double network, double host = 0, uint32_t packets = 1) {
    event.acked_packets = packets;
    event.acked_bytes = packets * kPacket;
    event.rtt_ns = static_cast<uint32_t>(network * 1000);
    event.peer_delay_ns = static_cast<uint32_t>(host * 1000);
    return call(ROCI_CC_ON_ACK | ROCI_CC_ON_RTT);
  }
  const roci_cc_decision& timeout() {
    event.timeouts = 1;
    return call(ROCI_CC_ON_TIMEOUT);
  }
  [[nodiscard]] double network() { return member(0); }
  [[nodiscard]] double host() { return member(2); }

 private:
  static Values with_vectors(Values values) {
    values.try_emplace("base_target", 25'000);
    values.try_emplace("fs_range", 0);
    values.try_emplace("initial_window", 10);
    values.try_emplace("use_before_growth", 0);
    return values;
  }
  double member(size_t index) { return number_at(8 * index); }
};

// Reference, section 6: base 25 us, no flow scaling, beta 0.8, max_mdf 0.5, ai 1.
TEST(Swift, follows_reference_vector) {
  Swift flow;
  EXPECT_NEAR((flow.acked(20), flow.network()), 10.1, 5e-7);
  EXPECT_NEAR((flow.acked(30), flow.network()), 8.753333, 5e-7);
  EXPECT_EQ(flow.reason_name(), "network_delay");
  EXPECT_EQ(flow.decision.window, static_cast<uint64_t>(flow.network() * kPacket));
  EXPECT_NEAR((flow.acked(100), flow.network()), 4.376667, 5e-7);
  EXPECT_NEAR((flow.acked(24), flow.network()), 4.605151, 5e-7);
  EXPECT_EQ(flow.reason_name(), "grown");
}

// Reference, section 6: fs_range 100 us. The target is the delay at which growth changes to reduction.
TEST(Swift, follows_vector_of_flow_scaling) {
  const std::pair<double, double> vectors[] = {{0.1, 100.0}, {1, 29.390}, {16, 4.898}, {100, 0.0}};
  for (const auto& [window, scaling] : vectors) {
    for (const double beside : {-0.002, 0.002}) {
      Swift flow({{"fs_range", 4}});  // multiple of 25 us
      std::memcpy(flow.state(), &window, sizeof window);
      flow.acked(25 + scaling + beside);
      EXPECT_EQ(flow.network() > window, beside < 0) << window;
    }
  }
}

TEST(Swift, target_grows_with_each_hop) {
  for (const uint32_t hops : {0U, 3U}) {
    Swift flow({{"hop_target", 2000}});
    flow.event.hops = hops;
    flow.acked(30.9);
    EXPECT_EQ(flow.network() > 10, hops == 3) << hops;
    flow.acked(30.9);
    EXPECT_EQ(flow.network() > 10, hops == 3) << "telemetry does not come with each packet";
  }
}

TEST(Swift, derives_target_and_window_from_base_rtt) {
  Driver flow(plugin("swift"), {{"fs_range", 0}});
  EXPECT_EQ(flow.decision.window, 51 * kPacket);
  flow.event.in_flight = 50 * kPacket;
  flow.event.acked_packets = 1;
  flow.event.acked_bytes = kPacket;
  flow.rtt(5249, ROCI_CC_ON_ACK | ROCI_CC_ON_RTT);
  EXPECT_GT(flow.decision.window, 51 * kPacket);
  flow.event.now_ns = 1'000'000;
  flow.rtt(5500);
  EXPECT_LT(flow.decision.window, 51 * kPacket);
}

TEST(Swift, reduces_window_once_per_round_trip_for_any_cause) {
  Swift flow;
  flow.acked(50);
  EXPECT_NEAR(flow.network(), 6, 1e-9);  // 1 - 0.8 / 2
  for (int i = 0; i < 20; ++i) EXPECT_NEAR((flow.acked_at_once(50), flow.network()), 6, 1e-9);
  flow.call(ROCI_CC_ON_LOSS);
  flow.timeout();
  EXPECT_NEAR(flow.network(), 6, 1e-9);
  flow.event.now_ns += 49'998;
  EXPECT_NEAR((flow.acked_at_once(50), flow.network()), 6, 1e-9);
  flow.event.now_ns += 2;
  flow.call(ROCI_CC_ON_LOSS);
  EXPECT_NEAR(flow.network(), 3, 1e-9);
  EXPECT_EQ(flow.reason_name(), "loss");
  EXPECT_NEAR((flow.acked_at_once(50), flow.network()), 3, 1e-9);
}

TEST(Swift, grows_by_ai_per_packet_below_one_and_ai_over_window_above) {
  Swift flow({{"ai", 0.25}});
  const double from = 0.5;
  std::memcpy(flow.state(), &from, sizeof from);
  EXPECT_NEAR((flow.acked(10), flow.network()), 0.75, 1e-12);
  EXPECT_NEAR((flow.acked(10), flow.network()), 1.0, 1e-12);
  EXPECT_NEAR((flow.acked(10), flow.network()), 1.25, 1e-12);
  EXPECT_NEAR((flow.acked(10), flow.network()), 1.45, 1e-12);
  EXPECT_NEAR((flow.acked(10, 0, 1'000'000), flow.network()), 1.7, 1e-12) << "a window's worth at most";
}

TEST(Swift, window_below_one_packet_sets_a_gap) {
  Swift flow({{"initial_window", 1}});
  flow.acked(100, 20);
  EXPECT_EQ(flow.state_name(), "subpacket");
  EXPECT_EQ(flow.decision.window, kPacket);
  EXPECT_EQ(flow.decision.gap_ns, 240'000U);  // (100 us + 20 us) / 0.5
  for (int i = 0; i < 20; ++i) flow.acked(100);
  EXPECT_NEAR(flow.network(), 0.01, 1e-12);
  EXPECT_EQ(flow.decision.gap_ns, 10'000'000U);
  flow.acked(10), flow.acked(10);
  EXPECT_EQ(flow.decision.gap_ns, 0U);
}

TEST(Swift, gap_is_limited_by_target_delay) {
  Swift flow({{"initial_window", 1}, {"host_target", 0}});
  flow.acked(5000);
  EXPECT_EQ(flow.decision.gap_ns, 50'000U);  // 25 us / 0.5
}

TEST(Swift, uses_smaller_of_host_and_network_window) {
  Swift flow({{"host_target", 50'000}});
  flow.acked(20, 100);  // 1 - 0.8 / 2
  EXPECT_EQ(flow.reason_name(), "host_delay");
  EXPECT_EQ(flow.state_name(), "host");
  EXPECT_NEAR(flow.host(), 6, 1e-9);
  EXPECT_NEAR(flow.network(), 10.1, 1e-9);
  EXPECT_EQ(flow.decision.window, static_cast<uint64_t>(flow.host() * kPacket));
  flow.acked(100, 20);
  EXPECT_EQ(flow.reason_name(), "network_delay");
  EXPECT_EQ(flow.state_name(), "network");
  EXPECT_NEAR(flow.network(), 5.05, 1e-9);
  EXPECT_GT(flow.host(), 6);
}

TEST(Swift, uses_network_delay_alone_without_host_delay) {
  roci_cc_flow on = Driver::usual_flow();
  on.provides &= ~static_cast<uint32_t>(ROCI_CC_NEEDS_HOST_DELAY);
  Swift flow({}, on), told({{"host_target", 0}});
  for (Swift* each : {&flow, &told}) {
    for (int i = 0; i < 100; ++i) each->acked(20, 10'000);
    EXPECT_EQ(each->state_name(), "network");
    EXPECT_GT(each->decision.window, 15 * kPacket);
  }
}

TEST(Swift, next_sample_counts_packets_acknowledged_without_one) {
  Swift flow;
  for (int i = 0; i < 4; ++i) EXPECT_EQ((flow.ack(), flow.network()), 10);
  flow.rtt(20'000);
  EXPECT_NEAR(flow.network(), 10.4, 1e-9);
  flow.rtt(20'000);
  EXPECT_NEAR(flow.network(), 10.4, 1e-9);
}

TEST(Swift, consecutive_timeouts_reduce_window_to_minimum) {
  Swift flow;
  flow.acked(1);
  for (int i = 1; i <= 4; ++i) {
    flow.event.now_ns += 1'000'000;
    EXPECT_NEAR((flow.timeout(), flow.network()), 10.1 / (1 << i), 0.4) << i;
  }
  EXPECT_NEAR((flow.timeout(), flow.network()), 0.01, 1e-12) << "the fifth, even in the same round trip";
  Swift heard;
  for (int i = 1; i <= 20; ++i) {
    heard.event.now_ns += 1'000'000;
    if (i % 4 == 0) heard.acked(1);
    heard.timeout();
  }
  EXPECT_GT(heard.network(), 0.1) << "an ACK between them begins a new row";
}

TEST(Swift, does_not_grow_underused_window) {
  Swift flow({{"use_before_growth", 0.5}});
  flow.event.in_flight = 3 * kPacket;
  EXPECT_EQ((flow.acked(10), flow.network()), 10);
  flow.event.in_flight = 4 * kPacket;
  EXPECT_GT((flow.acked(10), flow.network()), 10);
}

TEST(Swift, longer_delay_never_gives_a_larger_window) {
  std::mt19937_64 rng(9);
  for (int round = 0; round < 2000; ++round) {
    Swift less({{"fs_range", 4}}), more({{"fs_range", 4}});
    const double window = 0.05 + static_cast<double>(rng() % 1000) / 20;
    for (Swift* each : {&less, &more}) std::memcpy(each->state(), &window, sizeof window);
    const double delay = 1 + static_cast<double>(rng() % 200);
    less.acked(delay), more.acked(delay + static_cast<double>(rng() % 50));
    ASSERT_LE(more.network(), less.network()) << window << ' ' << delay;
    ASSERT_GE(more.network(), window * 0.5 - 1e-12);
  }
}

TEST(Swift, ignores_round_trip_time_of_0) {
  Swift flow;
  const double before = flow.network();
  flow.event.rtt_ns = 0;
  flow.call(ROCI_CC_ON_RTT);
  EXPECT_EQ(flow.network(), before);
  EXPECT_EQ(flow.reason_name(), "implausible");
}

TEST(Swift, requires_base_rtt_or_explicit_target_and_window) {
  const roci_cc_plugin& swift = plugin("swift");
  roci_cc_flow flow = Driver::usual_flow();
  Driver driver(swift);
  EXPECT_EQ(swift.check(&flow, driver.parameters.data()), nullptr);
  flow.base_rtt_ns = 0;
  EXPECT_STREQ(swift.check(&flow, driver.parameters.data()), "base_target: 0 requires base_rtt");
  driver.parameters[driver.index_of("base_target")] = 25'000;
  EXPECT_STREQ(swift.check(&flow, driver.parameters.data()), "initial_window: 0 requires base_rtt");
  driver.parameters[driver.index_of("initial_window")] = 10;
  EXPECT_EQ(swift.check(&flow, driver.parameters.data()), nullptr);
  driver.parameters[driver.index_of("fs_min_window")] = 100;
  EXPECT_STREQ(swift.check(&flow, driver.parameters.data()), "fs_min_window must be below fs_max_window");
}

}  // namespace
}  // namespace roci::test
