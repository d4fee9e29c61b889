// DCTCP: vectors of the fixed-point arithmetic in Linux, and rules of RFC 8257.
#include <cstring>
#include <random>

#include "cc/driver.hpp"

namespace roci::test {
namespace {

class Dctcp : public Driver {
 public:
  // The window grows even if it is not used; a window of packets was sent.
  explicit Dctcp(Values values = {}, uint32_t sent = 10) : Driver(plugin("dctcp"), used(std::move(values))) {
    event.next = sent * kPayload;
    call(ROCI_CC_ON_SENT);
  }

  // All packets in flight are acknowledged, and the same number was sent after them.
  const roci_cc_decision& window(uint32_t packets, uint32_t marked = 0) {
    event.next = event.acked + 2 * packets * kPayload;
    return ack(packets, marked);
  }
  const roci_cc_decision& loss() {
    event.losses = 1;
    return call(ROCI_CC_ON_LOSS);
  }
  [[nodiscard]] uint64_t packets() const {
    EXPECT_EQ(decision.window % kPacket, 0U);
    return decision.window / kPacket;
  }
  template <typename T>
  T& member(size_t offset) {
    return *reinterpret_cast<T*>(static_cast<uint8_t*>(state()) + offset);
  }
  [[nodiscard]] uint32_t alpha() { return member<uint32_t>(52); }

 private:
  static Values used(Values values) {
    values.try_emplace("use_before_growth", 0);
    return values;
  }
};

// Reference, section 6: ten packets per window, of which none, all, half and none are marked; `left` is what remains
// of 100.
// 100 Gb/s * 4.2 us are 52,500 bytes: 50.1 packets of 1048 bytes.
TEST(Dctcp, initial_window_of_zero_is_the_bandwidth_delay_product) {
  Driver flow(plugin("dctcp"), {{"initial_window", 0}});
  EXPECT_EQ(flow.decision.window, 51 * kPacket);
  Driver limited(plugin("dctcp"), {{"initial_window", 0}, {"max_window", 20}});
  EXPECT_EQ(limited.decision.window, 20 * kPacket);
  roci_cc_flow unknown = Driver::usual_flow();
  unknown.base_rtt_ns = 0;
  EXPECT_STREQ(plugin("dctcp").check(&unknown, flow.parameters.data()), "initial_window 0 requires base_rtt");
}

TEST(Dctcp, follows_vector_of_linux) {
  Dctcp flow;
  struct Vector {
    uint32_t marked, alpha;
    uint64_t left;
  };
  for (const Vector& each : {Vector{0, 960, 54}, {10, 964, 53}, {5, 936, 55}, {0, 878, 58}}) {
    flow.window(10, each.marked);
    EXPECT_EQ(flow.alpha(), each.alpha);
    Dctcp other;
    std::memcpy(other.state(), flow.state(), 56);
    other.member<uint64_t>(8) = 0;     // no pending cut
    other.member<uint32_t>(40) = 100;  // cwnd
    other.event.acked = flow.event.acked;
    other.event.next = flow.event.next;
    other.ack(1, 1);  // within the next window: alpha stays
    EXPECT_EQ(other.packets(), each.left);
    EXPECT_EQ(other.alpha(), each.alpha);
  }
}

// The packets of a window may be acknowledged one by one or together.
TEST(Dctcp, measures_alpha_over_whole_windows) {
  Dctcp single({}, 10);
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(single.alpha(), 1024U) << i;
    single.event.next = 20 * kPayload;
    single.ack(1, i < 5 ? 1 : 0);
  }
  EXPECT_EQ(single.alpha(), 1024U - 64 + 32);
}

TEST(Dctcp, alpha_decays_to_zero_without_marks) {
  Dctcp flow;
  for (int i = 0; i < 200; ++i) flow.window(10);
  EXPECT_EQ(flow.alpha(), 0U);
  flow.window(10, 1);  // 64 / 10
  EXPECT_EQ(flow.alpha(), 6U);
}

TEST(Dctcp, slow_start_is_followed_by_one_packet_per_round_trip) {
  Dctcp flow;
  EXPECT_EQ(flow.packets(), 10U);
  EXPECT_EQ(flow.state_name(), "slow_start");
  EXPECT_EQ((flow.window(10), flow.packets()), 20U);
  EXPECT_EQ((flow.window(20), flow.packets()), 40U);
  flow.window(40, 1);  // alpha 1024 - 64 - 60 - 57 + 1 = 844 of 1024: 40 - 40 * 844 / 2048
  EXPECT_EQ(flow.packets(), 24U);
  EXPECT_EQ(flow.state_name(), "reduced");
  flow.window(40);
  EXPECT_EQ(flow.packets(), 25U);
  EXPECT_EQ(flow.state_name(), "avoidance");
  for (int i = 0; i < 8; ++i)
    EXPECT_EQ((flow.window(1), flow.packets()), 25U) << i;  // 24 of the 40 packets made a step, 16 remain
  EXPECT_EQ((flow.window(1), flow.packets()), 26U);
}

TEST(Dctcp, window_grows_by_increase_per_round_trip) {
  for (const double increase : {0.5, 1.0, 2.0}) {
    Dctcp flow({{"initial_window", 100}, {"increase", increase}}, 100);
    flow.window(100, 1);
    flow.window(100);  // ends the window of the cut
    const auto start = flow.packets();
    uint32_t round_trips = 0;
    for (; flow.packets() < start + 10 && round_trips < 100; ++round_trips)
      flow.window(static_cast<uint32_t>(flow.packets()));
    EXPECT_NEAR(round_trips, 10 / increase, 1) << increase;
  }
}

// A window of 31 packets grows by one per two acknowledged packets.
TEST(Dctcp, large_increase_is_rounded) {
  Dctcp flow({{"initial_window", 20}, {"increase", 30}}, 20);
  flow.window(20, 1);
  flow.window(20);  // ends the window of the cut
  ASSERT_EQ(flow.packets(), 31U);
  EXPECT_EQ((flow.window(31), flow.packets()), 46U);
}

TEST(Dctcp, first_window_is_at_least_one_packet) {
  Driver flow(plugin("dctcp"), {{"initial_window", 0.3}});
  EXPECT_EQ(flow.decision.window, kPacket);
  flow.event.in_flight = kPacket;
  flow.event.next = 10 * kPayload;
  EXPECT_EQ((flow.ack(), flow.decision.window), 2 * kPacket);
}

TEST(Dctcp, cuts_once_per_window) {
  Dctcp flow({{"initial_window", 100}}, 100);
  flow.event.next = 150 * kPayload;
  flow.ack(1, 1);
  EXPECT_EQ(flow.packets(), 50U);
  EXPECT_EQ(flow.reason_name(), "marked");
  for (int i = 2; i < 150; ++i) EXPECT_EQ((flow.ack(1, 1), flow.packets()), 50U) << i;
  flow.ack(1, 1);
  EXPECT_LT(flow.packets(), 50U);
}

TEST(Dctcp, does_not_grow_in_the_window_of_a_cut) {
  Dctcp flow({{"initial_window", 100}}, 200);
  flow.ack(1, 1);
  for (int i = 2; i < 200; ++i) EXPECT_EQ((flow.ack(), flow.packets()), 50U) << i;
  for (int i = 0; i < 50; ++i) flow.ack();
  EXPECT_EQ(flow.packets(), 51U);
}

TEST(Dctcp, window_stays_at_configured_minimum) {
  Dctcp flow;
  for (int i = 0; i < 20; ++i) flow.window(2, 2);
  EXPECT_EQ(flow.packets(), 2U);
  Dctcp four({{"min_window", 4}});
  for (int i = 0; i < 20; ++i) four.window(2, 2);
  EXPECT_EQ(four.packets(), 4U);
}

TEST(Dctcp, halves_window_once_per_window_on_loss) {
  Dctcp flow({{"initial_window", 100}}, 100);
  flow.loss();
  EXPECT_EQ(flow.packets(), 50U);
  EXPECT_EQ(flow.reason_name(), "loss");
  flow.loss();
  flow.ack(20, 20);
  EXPECT_EQ(flow.packets(), 50U);
  flow.ack(80);
  flow.event.next = 200 * kPayload;
  flow.loss();
  EXPECT_EQ(flow.packets(), 25U);
}

TEST(Dctcp, timeout_restarts_slow_start_at_one_packet_up_to_half_window) {
  Dctcp flow({{"initial_window", 100}}, 100);
  flow.call(ROCI_CC_ON_TIMEOUT);
  EXPECT_EQ(flow.packets(), 1U);
  flow.call(ROCI_CC_ON_TIMEOUT);
  EXPECT_EQ(flow.packets(), 1U);
  EXPECT_EQ((flow.ack(1), flow.packets()), 2U);
  EXPECT_EQ(flow.state_name(), "slow_start");
  EXPECT_EQ((flow.ack(40), flow.packets()), 42U);
  EXPECT_EQ((flow.ack(8), flow.packets()), 50U);
  EXPECT_EQ(flow.state_name(), "avoidance");
  EXPECT_EQ((flow.ack(50), flow.packets()), 51U);
}

TEST(Dctcp, does_not_grow_underused_window) {
  Dctcp flow({{"use_before_growth", 0.5}});
  flow.event.in_flight = 3 * kPacket;
  EXPECT_EQ((flow.ack(1), flow.packets()), 10U);
  flow.event.in_flight = 4 * kPacket;
  EXPECT_EQ((flow.ack(1), flow.packets()), 11U);
}

TEST(Dctcp, alpha_and_window_stay_in_bounds_for_any_event) {
  std::mt19937_64 rng(11);
  Dctcp flow({{"max_window", 1000}});
  for (int i = 0; i < 50'000; ++i) {
    const auto wild = [&] { return static_cast<uint32_t>(rng() >> (rng() % 64)); };
    flow.event.next = flow.event.acked + rng() % 1'000'000;
    flow.event.acked_packets = wild();
    flow.event.marked_packets = wild();
    flow.event.acked = flow.event.next - rng() % (flow.event.next - flow.event.acked + 1);
    flow.call(rng() % 50 == 0 ? ROCI_CC_ON_LOSS : ROCI_CC_ON_ACK);
    ASSERT_LE(flow.alpha(), 1024U);
    ASSERT_GE(flow.packets(), 2U);
    ASSERT_LE(flow.packets(), 1000U);
  }
}

TEST(Dctcp, more_marks_never_give_a_larger_window) {
  std::mt19937_64 rng(12);
  for (int round = 0; round < 500; ++round) {
    Dctcp less, more;
    for (int i = 0; i < 10; ++i) {  // the same start for both
      const auto packets = static_cast<uint32_t>(1 + rng() % 50);
      const auto marked = rng() % 3 == 0 ? static_cast<uint32_t>(rng() % (packets + 1)) : 0;
      less.window(packets, marked), more.window(packets, marked);
    }
    const auto packets = static_cast<uint32_t>(2 + rng() % 50);
    const auto marked = static_cast<uint32_t>(rng() % packets);
    less.window(packets, marked), more.window(packets, marked + 1);
    ASSERT_LE(more.packets(), less.packets()) << packets << ' ' << marked;
    ASSERT_GE(more.alpha(), less.alpha());
  }
}

}  // namespace
}  // namespace roci::test
