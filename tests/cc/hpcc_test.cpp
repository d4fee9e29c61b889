// HPCC++ in the sender: requirements H1 to H52 as far as they concern the sender, and pauses, counter wraps and
// rejected telemetry.
#include <cmath>
#include <random>

#include "cc/hpcc.hpp"

namespace roci::test {
namespace {

TEST(Hpcc, starts_at_line_rate_with_full_window) {  // H17
  Hpcc flow;
  EXPECT_EQ(flow.decision.window, 52'500U);
  EXPECT_EQ(flow.decision.rate, kPort);
  EXPECT_EQ(flow.state_name(), "blind");
}

// Reference, section 6: W_ai 80, max_stage 0. Wc is 52500 throughout.
TEST(Hpcc, follows_reference_vector) {  // H14
  Hpcc flow;
  flow.first();
  // HPCC uses the smaller of two samples, so this counts from the third sample on.
  flow.path.hop[0].queue_bytes = 80'000;
  flow.tell_after(kTick, kFull);
  EXPECT_NEAR(flow.load(), 1.0, 5e-7);
  EXPECT_NEAR(flow.window(), 49955.0, 0.05);
  EXPECT_EQ(flow.reason_name(), "reduced");
  flow.tell_after(kTick, kFull);
  EXPECT_NEAR(flow.load(), 1.181406, 5e-7);
  EXPECT_NEAR(flow.window(), 42296.7, 0.05);
  flow.path.hop[0].queue_bytes = 0;
  flow.tell_after(kTick, kFull);
  EXPECT_NEAR(flow.load(), 1.138214, 5e-7);
  EXPECT_NEAR(flow.window(), 43898.6, 0.05);
  EXPECT_EQ(flow.decision.window, 43898U);
  EXPECT_EQ(flow.decision.rate, static_cast<uint64_t>(flow.window() * 8e9 / 8400));  // line 27
  flow.tell_after(2 * kTick, kFull);
  EXPECT_NEAR(flow.load(), 0.834303, 5e-7);
  EXPECT_EQ(flow.decision.window, 52'500U);
  EXPECT_EQ(flow.committed(), 52'500);
  EXPECT_EQ(flow.state_name(), "below_target");
}

// The derived step is W_init * (1 - eta) / flows.
TEST(Hpcc, eta_of_1_requires_an_additive_step) {
  Driver flow(plugin("hpcc"), {{"eta", 1}});
  for (const roci_cc_flow* of : {static_cast<const roci_cc_flow*>(nullptr), &std::as_const(flow.flow)})
    EXPECT_STREQ(plugin("hpcc").check(of, flow.parameters.data()), "eta: 1 requires w_ai");
  flow.parameters[flow.index_of("w_ai")] = 80;
  EXPECT_EQ(plugin("hpcc").check(&flow.flow, flow.parameters.data()), nullptr);
}

TEST(Hpcc, commits_reference_window_once_per_round_trip) {  // H22
  Hpcc flow;
  flow.first();  // 52 packets were sent, 1 is acknowledged
  for (int i = 2; i <= 52; ++i) {
    flow.tell_after(160, 250);
    EXPECT_EQ(flow.committed(), 52'500) << i;
  }
  flow.event.next = 90 * kPayload;
  flow.tell_after(160, 250);
  const double once = flow.committed();
  EXPECT_LT(once, 52'500);
  EXPECT_EQ(once, flow.window());
  for (int i = 54; i <= 90; ++i) EXPECT_EQ((flow.tell_after(160, 250), flow.committed()), once);
  flow.tell_after(160, 250);
  EXPECT_LT(flow.committed(), once);
}

TEST(Hpcc, max_stage_adds_steps_before_multiplicative_increase) {  // lines 12 to 19, H16
  Hpcc flow({{"max_stage", 2}, {"timeout_cut", 0.2}});
  flow.call(ROCI_CC_ON_TIMEOUT);  // 10500
  flow.tell();
  // U = 1/2; each ACK belongs to a new round.
  for (int i = 0; i < 3; ++i) flow.tell_after(10 * kTick, 5 * kFull);
  EXPECT_NEAR(flow.window(), (10'500 + 160) * 0.95 / 0.5 + 80, 1e-6);
  flow.tell_after(10 * kTick, 5 * kFull);
  EXPECT_NEAR(flow.window(), (10'500 + 160) * 0.95 / 0.5 + 160, 1e-6) << "and from the first step again";
}

TEST(Hpcc, derives_additive_step_from_expected_flows) {  // H18
  Hpcc flow({{"w_ai", 0}, {"max_stage", 1000}, {"flows", 25}, {"timeout_cut", 0.5}});
  flow.call(ROCI_CC_ON_TIMEOUT);
  flow.tell();
  flow.tell_after(10 * kTick, 0);
  EXPECT_NEAR(flow.window(), 26'250 + 52'500 * 0.05 / 25, 1e-6);
}

TEST(Hpcc, uses_receivers_flow_count_if_last_hop_is_most_loaded) {  // H31
  for (const bool last : {true, false}) {
    Hpcc flow({{"w_ai", 0}, {"max_stage", 1000}, {"flows", 100}, {"flows_reported", 1}});
    flow.hops(2);
    flow.call(ROCI_CC_ON_TIMEOUT);
    flow.event.flows_at_receiver = 5;
    flow.tell();
    for (int i = 0; i < 2; ++i) {  // the busiest hop is known from the second sample on
      flow.path.hop[last ? 1 : 0].sent_units += kFull;
      flow.tell_after(10 * kTick, kFull);
    }
    EXPECT_NEAR(flow.window(), 26'250 + 2 * 52'500 * 0.05 / (last ? 5 : 100), last ? 500 : 1e-6);
  }
}

TEST(Hpcc, uses_most_loaded_hop) {  // lines 3 to 7
  Hpcc flow;
  flow.hops(5);
  flow.tell();
  flow.path.hop[3].sent_units += 3 * kFull;
  // 0.2, and 0.8 at the fourth hop; the time is more than T, so U is that of this sample.
  flow.tell_after(5 * kTick, kFull);
  EXPECT_NEAR(flow.load(), 0.8, 1e-12);
}

TEST(Hpcc, update_modes_react_per_ack_or_per_round_trip) {  // paper, figure 13
  Hpcc combined, per_ack({{"update", 1}}), per_round({{"update", 2}});
  for (Hpcc* flow : {&combined, &per_ack, &per_round}) {
    flow->first();
    for (int i = 0; i < 10; ++i) flow->tell_after(kTick, kFull);
  }
  EXPECT_NEAR(combined.window(), 49'955, 0.01) << "from the same Wc each time";
  EXPECT_LT(per_ack.window(), 52'500 * std::pow(0.96, 10)) << "on and on";
  EXPECT_EQ(per_round.window(), 52'500) << "not yet";
  per_round.tell_after(kTick, kFull, 60);
  EXPECT_NEAR(per_round.window(), 49'955, 0.01);
}

TEST(Hpcc, arrived_mode_adds_queue_change_to_transmitted_units) {  // paper, figure 6
  Hpcc sent, arrived({{"arrived", 1}});
  for (Hpcc* flow : {&sent, &arrived}) {
    flow->tell();
    flow->path.hop[0].queue_bytes = 25'000;
    flow->tell_after(5 * kTick, kFull);  // more than T, so U is that of this sample
  }
  EXPECT_NEAR(sent.load(), 0.2, 1e-12);
  EXPECT_NEAR(arrived.load(), 0.4, 1e-12) << "as much again is in the queue";
  arrived.path.hop[0].queue_bytes = 10'000;
  arrived.tell_after(5 * kTick, kFull);
  EXPECT_NEAR(arrived.load(), 10'000 / (12.5 * 8400) + 0.2 * 10 / 25, 1e-12)
      << "a part of what was sent was there";
  arrived.path.hop[0].queue_bytes = 0;
  arrived.tell_after(5 * kTick, 0);
  EXPECT_EQ(arrived.load(), 0) << "and nothing less than nothing comes";
}

TEST(Hpcc, ignores_acks_without_telemetry) {  // H28
  Hpcc flow;
  flow.first();
  flow.tell_after(kTick, kFull);
  const uint64_t before = flow.decision.window;
  for (int i = 0; i < 200; ++i) flow.ack();
  EXPECT_EQ(flow.decision.window, before);
}

TEST(Hpcc, delayed_telemetry_gives_same_load_as_per_packet_telemetry) {  // H6, H29
  Hpcc each, delayed;
  each.first(), delayed.first();
  for (int i = 0; i < 8; ++i) each.tell_after(400, 625);
  delayed.path.flags = ROCI_CC_PATH_DELAYED;
  delayed.pass(3200, 5000);
  delayed.tell(8);
  EXPECT_NEAR(delayed.load(), each.load(), 1e-3);
  for (int i = 0; i < 10; ++i) delayed.pass(3200, 5000), delayed.tell(8);
  EXPECT_LT(delayed.committed(), 52'500) << "and does not stand still (HPCC issue 65)";
}

// -------------------------------------------------------------------------------------- invalid and old telemetry

TEST(Hpcc, path_change_stores_hops_without_changing_window) {
  for (const int what : {0, 1, 2}) {
    Hpcc flow;
    flow.hops(2);
    flow.first();
    flow.tell_after(kTick, kFull);
    const uint64_t before = flow.decision.window;
    if (what == 0) flow.hops(3);
    if (what == 1) flow.path.hop[1].node = 77;
    if (what == 2) flow.path.hop[0].port = 78;
    flow.path.hop[1].queue_bytes = 1'000'000;
    flow.tell_after(kTick, 9 * kFull);
    EXPECT_EQ(flow.reason_name(), "path_changed") << what;
    EXPECT_EQ(flow.decision.window, before) << what;
    flow.tell_after(kTick, kFull);
    EXPECT_EQ(flow.reason_name(), "reduced") << what;
  }
}

TEST(Hpcc, handles_wraparound_of_hop_counters) {
  Hpcc plain, wraps;
  wraps.path.hop[0].time_ns = 0U - 3000;
  wraps.path.hop[0].sent_units = 0U - 1000;
  plain.first(), wraps.first();
  for (int i = 0; i < 5; ++i) plain.tell_after(kTick, kFull), wraps.tell_after(kTick, kFull);
  EXPECT_EQ(plain.load(), wraps.load());
  EXPECT_EQ(plain.window(), wraps.window());
}

TEST(Hpcc, skips_hops_without_elapsed_time_or_known_rate) {
  Hpcc flow;
  flow.hops(2);
  flow.first();
  flow.path.hop[0].sent_units += kFull;  // no time has passed; its sent units count for the next sample
  flow.path.hop[1].time_ns += kTick;
  flow.path.hop[1].rate = 0;
  flow.tell();
  EXPECT_EQ(flow.decision.window, 52'500U);
  EXPECT_EQ(flow.reason_name(), "nothing");
  flow.path.hop[1].rate = kLink;
  flow.path.hop[0].time_ns += 5 * kTick;
  flow.path.hop[0].sent_units += kFull;
  flow.tell();
  EXPECT_NEAR(flow.load(), 0.4, 1e-12);
}

TEST(Hpcc, rejects_implausible_hops) {  // H52
  struct Case {
    const char* what;
    void (*change)(roci_cc_hop&);
  };
  const Case cases[] = {
      {"time goes back", [](roci_cc_hop& hop) { hop.time_ns -= 2 * kTick; }},
      {"more than the link carries", [](roci_cc_hop& hop) { hop.sent_units += kFull / 5 + 2 * 1048 / 8; }},
      {"an absurd queue", [](roci_cc_hop& hop) { hop.queue_bytes = 0xffffffff; }},
      {"no such link", [](roci_cc_hop& hop) { hop.rate = uint64_t{1} << 63; }},
      {"nearly no link", [](roci_cc_hop& hop) { hop.rate = 1; }},
  };
  for (const Case& each : cases) {
    Hpcc flow;
    flow.first();
    flow.tell_after(kTick, kFull);
    const roci_cc_hop good = flow.path.hop[0];
    const uint64_t before = flow.decision.window;
    flow.pass(kTick, kFull);
    each.change(flow.path.hop[0]);
    flow.tell();
    EXPECT_EQ(flow.reason_name(), "implausible") << each.what;
    EXPECT_EQ(flow.decision.window, before) << each.what;
    flow.path.hop[0] = good;
    flow.pass(kTick, kFull);
    flow.tell_after(kTick, kFull);
    EXPECT_NE(flow.reason_name(), "implausible")
        << each.what << ": the next good one is compared with the last";
    EXPECT_NEAR(flow.load(), 1, 1e-9) << each.what;
  }
}

TEST(Hpcc, uses_valid_hops_next_to_an_implausible_one) {
  Hpcc flow;
  flow.hops(3);
  flow.first();
  flow.path.hop[1].time_ns -= 1;
  flow.path.hop[0].time_ns += 5 * kTick, flow.path.hop[0].sent_units += 4 * kFull;
  flow.tell();
  EXPECT_EQ(flow.reason_name(), "implausible");
  EXPECT_NEAR(flow.load(), 0.8, 1e-12);
}

TEST(Hpcc, discards_samples_from_before_a_pause) {
  Hpcc flow;
  flow.first();
  for (int i = 0; i < 100; ++i) flow.tell_after(5 * kTick, kFull);
  EXPECT_NEAR(flow.load(), 0.2, 1e-9);
  const uint64_t before = flow.decision.window;
  flow.tell_after(8'500'000, 1);
  EXPECT_EQ(flow.reason_name(), "first_sample");
  EXPECT_EQ(flow.decision.window, before);
  EXPECT_EQ(flow.load(), 1);
}

TEST(Hpcc, long_packet_gaps_of_many_flows_are_not_a_pause) {
  Hpcc flow({{"min_rate", 1e7}});
  flow.first();
  for (int i = 0; i < 60; ++i) {  // 2000 flows: 168 us between packets
    flow.path.hop[0].queue_bytes = 2'000'000;
    flow.tell_after(84 * kTick, 84 * kFull);
  }
  EXPECT_LE(flow.decision.window, 110U);  // 5 from the minimum rate, and twice the step
  flow.path.hop[0].queue_bytes = 0;
  for (int i = 0; i < 60; ++i)
    flow.tell_after(2'000'000, 1);  // at most 40 ms between packets at the minimum rate
  EXPECT_EQ(flow.decision.window, 52'500U);
}

TEST(Hpcc, uses_last_hops_of_a_long_path) {
  Hpcc flow;
  flow.hops(12);
  flow.tell();
  flow.path.hop[2].sent_units += 4 * kFull;  // beyond the hops that are stored
  flow.path.hop[11].sent_units += 2 * kFull;
  flow.tell_after(5 * kTick, kFull);
  EXPECT_NEAR(flow.load(), 0.6, 1e-12);
  flow.path.hops = 0;
  flow.tell();
  EXPECT_EQ(flow.reason_name(), "nothing");
}

TEST(Hpcc, window_stays_between_minimum_rate_and_full_window) {
  Hpcc flow({{"min_rate", 1e9}, {"w_ai", 1}});
  flow.first();
  for (int i = 0; i < 100; ++i) {
    flow.path.hop[0].queue_bytes = 900'000'000;
    flow.tell_after(kTick, kFull);
  }
  EXPECT_EQ(flow.decision.window, 1050U);  // 1 Gb/s for 8.4 us
  EXPECT_EQ(flow.decision.rate, 1'000'000'000U);
  flow.path.hop[0].queue_bytes = 0;
  for (int i = 0; i < 100; ++i) flow.tell_after(10 * kTick, 0);
  EXPECT_EQ(flow.decision.window, 52'500U);
  EXPECT_EQ(flow.decision.rate, kPort);
}

TEST(Hpcc, halves_window_on_timeout) {
  Hpcc flow;
  flow.first();
  flow.call(ROCI_CC_ON_TIMEOUT);
  EXPECT_EQ(flow.decision.window, 26'250U);
  EXPECT_EQ(flow.reason_name(), "timeout");
  flow.tell_after(kTick, kFull);
  EXPECT_EQ(flow.reason_name(), "first_sample");
}

// --------------------------------------------------------------------------------------------- INT responses

TEST(Hpcc, switch_response_reduces_window_once_per_window_within_limit) {  // H32 to H34
  Hpcc flow;
  flow.first();
  flow.tell_after(kTick, kFull);
  const uint64_t before = flow.decision.window;
  const roci_cc_path usual = flow.path;
  const auto answer = [&](uint32_t queue) {
    flow.path.hops = 1;
    flow.path.flags = ROCI_CC_PATH_FROM_SWITCH;
    flow.path.hop[0].node = 9;  // a node that is not in the known path
    flow.path.hop[0].queue_bytes = queue;
    flow.event.path = &flow.path;
    flow.call(ROCI_CC_ON_TELEMETRY);
  };
  answer(0);
  EXPECT_EQ(flow.decision.window, before) << "a port that is no more than full";
  answer(10'500);  // U = 1.1
  EXPECT_EQ(flow.reason_name(), "switch_answer");
  EXPECT_NEAR(flow.window(), 52'500 * 0.95 / 1.1 + 80, 1e-6);
  EXPECT_EQ(flow.committed(), 52'500) << "the ACKs that tell of the same queue begin from there";
  answer(5'000'000);
  EXPECT_NEAR(flow.window(), 52'500 * 0.95 / 1.1 + 80, 1e-6) << "once";
  flow.event.acked = flow.event.next;
  answer(5'000'000);
  EXPECT_NEAR(flow.window(), 52'500 * 0.95 / 2.2 + 80, 1e-6) << "by half";
  flow.event.acked = flow.event.next = flow.event.next + 100 * kPayload;
  answer(0);
  EXPECT_NEAR(flow.window(), 52'500 * 0.95 / 2.2 + 80, 1e-6) << "never up";
  flow.path = usual;
  flow.tell_after(5 * kTick, 1);
  EXPECT_NE(flow.reason_name(), "path_changed") << "the path is what it was";
}

// -------------------------------------------------------------------------------------------------- properties

TEST(Hpcc, longer_queue_never_gives_a_larger_window) {
  std::mt19937_64 rng(6);
  for (int round = 0; round < 500; ++round) {
    Hpcc shorter, longer;
    shorter.first(), longer.first();
    for (int i = 0; i < 20; ++i) {
      const auto nanos = static_cast<uint32_t>(50 + rng() % 8000);
      const auto units = static_cast<uint32_t>(uint64_t{nanos} * kFull / 2000 * (rng() % 101) / 100);
      shorter.path.hop[0].queue_bytes = static_cast<uint32_t>(rng() % 100'000);
      longer.path.hop[0].queue_bytes =
          shorter.path.hop[0].queue_bytes + static_cast<uint32_t>(rng() % 50'000);
      shorter.tell_after(nanos, units), longer.tell_after(nanos, units);
      ASSERT_LE(longer.window(), shorter.window() + 1e-9);
      ASSERT_GE(longer.load(), shorter.load() - 1e-12);
    }
  }
}

}  // namespace
}  // namespace roci::test
