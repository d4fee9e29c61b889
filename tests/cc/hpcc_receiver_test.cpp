// HPCC++ computed by the receiver, and the sender that obeys its window.
#include <random>

#include "cc/hpcc.hpp"

namespace roci::test {
namespace {

class Receiver {
 public:
  Receiver() {
    path.hops = 1;
    path.hop[0] = {
        .node = 1, .port = 3, .time_ns = 0, .sent_units = 0, .rate = kLink, .queue_bytes = 0, .reserved = 0};
    parameters = Driver(receiver).parameters;
    parameters[2] = 80;     // w_ai
    set("grant_every", 1);  // as in the draft
  }
  void set(const std::string& name, double value) { parameters[Driver(receiver).index_of(name)] = value; }
  // A packet with telemetry arrives `nanos` after the previous one.
  const roci_cc_grant& arrives(uint32_t nanos, uint32_t units) {
    path.hop[0].time_ns += nanos;
    path.hop[0].sent_units += units;
    return arrives_as_is(nanos);
  }
  const roci_cc_grant& arrives_as_is(uint32_t nanos) {
    now += nanos;
    received += kPayload;
    const roci_cc_arrival arrival = {.now_ns = now,
                                     .received = received,
                                     .packets = 1,
                                     .marked = 0,
                                     .bytes = kPayload,
                                     .flows = 1,
                                     .reserved = 0,
                                     .path = bare ? nullptr : &path};
    grant.send = 0;
    grant.reason = 0;
    receiver.receive(state.data(), &flow, &arrival, parameters.data(), &grant);
    return grant;
  }
  [[nodiscard]] std::string reason_name() const { return receiver.reasons[grant.reason].name; }

  const roci_cc_plugin& receiver = plugin("hpcc_receiver");
  alignas(8) std::array<uint8_t, ROCI_CC_MAX_STATE> state{};
  roci_cc_flow flow = flow_of_vectors();
  std::vector<double> parameters;
  roci_cc_path path{};
  roci_cc_grant grant{};
  uint64_t now = 1'000'000'000;
  uint64_t received = 0;
  bool bare = false;
};

uint64_t payload_of(double window) { return static_cast<uint64_t>(window * 1000 / 1048); }

TEST(HpccReceiver, grants_window_once_per_round_trip) {  // H30, lines 28 to 34
  Receiver end;
  EXPECT_EQ(end.arrives(kTick, kFull).send, 0U);
  EXPECT_EQ(end.reason_name(), "first_sample");
  for (int i = 0; i < 4; ++i) EXPECT_EQ(end.arrives(kTick, kFull).send, 0U) << i;
  EXPECT_EQ(end.arrives(kTick, kFull).send, 1U) << "10 us after the last, and T is 8.4";
  EXPECT_EQ(end.grant.window, payload_of(52'500 * 0.95 + 80));
  unsigned grants = 0;
  for (int i = 0; i < 100; ++i) grants += end.arrives(kTick, kFull).send;
  EXPECT_EQ(grants, 20U);
}

// A packet that waited 10 us was sent before a grant of 10 us ago could have an effect.
TEST(HpccReceiver, waits_for_queuing_delay_before_next_grant) {
  for (const auto& [queue, every, ticks] : {std::tuple{0U, 1.0, 5U}, {0U, 1.5, 7U}, {125'000U, 1.0, 10U}}) {
    Receiver end;
    end.set("grant_every", every);
    end.path.hop[0].queue_bytes = queue;  // at 100 Gb/s
    end.arrives(kTick, kFull);
    for (unsigned i = 1; i <= ticks; ++i)
      EXPECT_EQ(end.arrives(kTick, kFull).send, i == ticks ? 1U : 0U) << i;
  }
}

// H30, H49, line 29: the draft's interval is T, with a queue too.
TEST(HpccReceiver, grant_delay_0_ignores_queuing_delay) {
  Receiver end;
  end.set("grant_delay", 0);
  end.path.hop[0].queue_bytes = 125'000;  // 10 us at 100 Gb/s
  end.arrives(kTick, kFull);
  for (unsigned i = 1; i <= 15; ++i)
    EXPECT_EQ(end.arrives(kTick, kFull).send, i % 5 == 0 ? 1U : 0U) << i << ": T is 8.4 us, a tick 2 us";
}

// The window equals that of a sender with the same telemetry: the reference's vector, and the following commit.
TEST(HpccReceiver, computes_same_window_as_sender) {
  Receiver end;
  end.arrives(kTick, kFull);
  end.path.hop[0].queue_bytes = 80'000;
  end.arrives(kTick, kFull), end.arrives(kTick, kFull);
  end.path.hop[0].queue_bytes = 0;
  end.arrives(kTick, kFull);
  end.parameters[0] = 0.5;        // otherwise the maximum window would hide the result
  end.arrives(2 * kTick, kFull);  // U = 0.834303
  EXPECT_EQ(end.grant.send, 1U);
  EXPECT_NEAR(static_cast<double>(end.grant.window), (52'500 * 0.5 / 0.834303 + 80) * 1000 / 1048, 1);
}

TEST(HpccReceiver, sends_no_grant_without_telemetry_or_base_rtt) {
  Receiver bare, vague;
  bare.bare = true;
  vague.flow.base_rtt_ns = 0;
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(bare.arrives(kTick, kFull).send, 0U);
    EXPECT_EQ(vague.arrives(kTick, kFull).send, 0U);
  }
}

TEST(HpccReceiver, restarts_measurement_after_a_pause) {
  Receiver end;
  for (int i = 0; i < 20; ++i) end.arrives(kTick, kFull);
  EXPECT_EQ(end.arrives(9'000'000, 0).send, 0U);
  EXPECT_EQ(end.reason_name(), "first_sample");
}

TEST(HpccReceiver, processes_switch_responses) {  // H39
  Receiver end;
  for (int i = 0; i < 6; ++i) end.arrives(kTick, kFull);
  end.path.flags = ROCI_CC_PATH_FROM_SWITCH;
  end.path.hop[0].queue_bytes = 10'500;
  EXPECT_EQ(end.arrives_as_is(10).send, 0U) << "goes out with the next round";
  EXPECT_EQ(end.reason_name(), "switch_answer");
}

TEST(HpccReceiver, stays_within_its_state_and_grants_valid_windows_for_any_input) {
  std::mt19937_64 rng(8);
  Receiver end, again;
  for (int i = 0; i < 20'000; ++i) {
    const auto wild = [&] { return static_cast<uint32_t>(rng() >> (rng() % 64)); };
    end.path.hops = static_cast<uint32_t>(rng() % (ROCI_CC_MAX_HOPS + 1));
    end.path.flags = static_cast<uint32_t>(rng() % 16);
    if (rng() % 8 != 0) end.path.hops = 1;
    for (roci_cc_hop& hop : end.path.hop) {
      hop.time_ns += rng() % 2 == 0 ? static_cast<uint32_t>(rng() % 5000) : wild();
      hop.sent_units += rng() % 2 == 0 ? static_cast<uint32_t>(rng() % 5000) : wild();
      hop.queue_bytes = wild();
      hop.rate = rng() % 3 == 0 ? rng() >> (rng() % 64) : kLink;
    }
    again.path = end.path;
    const auto nanos = static_cast<uint32_t>(rng() % 10'000);
    end.arrives_as_is(nanos), again.arrives_as_is(nanos);
    ASSERT_EQ(end.state, again.state);
    ASSERT_EQ(end.grant.window, again.grant.window);
    ASSERT_TRUE(end.grant.send == 0 || end.grant.window > 0);
    ASSERT_LE(end.grant.window, payload_of(52'500));
    ASSERT_LT(end.grant.reason, end.receiver.reason_count);
  }
  for (size_t i = end.receiver.receiver_state_bytes; i < end.state.size(); ++i) ASSERT_EQ(end.state[i], 0);
}

TEST(HpccReceiver, sender_applies_granted_window) {  // H8
  Hpcc flow({}, "hpcc_receiver");
  EXPECT_EQ(flow.decision.window, 52'500U);
  flow.event.receiver_window = 20'000;
  flow.call(ROCI_CC_ON_WINDOW);
  EXPECT_EQ(flow.decision.window, 20'960U);  // with 48 bytes of headers per 1000 bytes of payload
  EXPECT_EQ(flow.decision.rate, static_cast<uint64_t>(20'960 * 8e9 / 8400));
  EXPECT_EQ(flow.state_name(), "granted");
  EXPECT_EQ(flow.reason_name(), "reduced");
  flow.event.receiver_window = UINT32_MAX;
  flow.call(ROCI_CC_ON_WINDOW);
  EXPECT_EQ(flow.decision.window, 52'500U);
  flow.event.receiver_window = 0;
  flow.call(ROCI_CC_ON_WINDOW);
  EXPECT_EQ(flow.decision.window, 105U);  // 100 Mb/s for 8.4 us
  flow.path.hop[0].queue_bytes = 0;
  for (int i = 0; i < 10; ++i) flow.tell_after(kTick, 0);
  EXPECT_EQ(flow.decision.window, 105U) << "and not by what it hears itself";
}

}  // namespace
}  // namespace roci::test
