// HPCC++ with telemetry on few packets or on probes.
#include "cc/hpcc.hpp"

namespace roci::test {
namespace {

// Requests without the persistent one.
uint32_t asked_by(const roci_cc_decision& decision) {
  return decision.requests & ~static_cast<uint32_t>(ROCI_CC_TELEMETRY_ONLY_ASKED);
}

TEST(HpccSampled, requests_telemetry_for_first_packet_of_each_round_trip) {  // H21, H37
  Hpcc flow({}, "hpcc_sampled");
  EXPECT_NE(flow.decision.requests & ROCI_CC_TELEMETRY_ONLY_ASKED, 0U);
  EXPECT_EQ(asked_by(flow.decision), ROCI_CC_TELEMETRY_NEXT);
  flow.event.next = 50 * kPayload;
  flow.tell();
  for (int i = 0; i < 4; ++i) flow.tell_after(5 * kTick, kFull);  // idle link
  ASSERT_EQ(flow.state_name(), "below_target");
  unsigned asked = 0;
  for (int round = 0; round < 10; ++round) {
    flow.event.next = flow.event.acked + 50 * kPayload;
    EXPECT_EQ(asked_by(flow.tell_after(5 * kTick, kFull)), ROCI_CC_TELEMETRY_NEXT);
    for (int i = 0; i < 49; ++i) asked += asked_by(flow.ack());
  }
  EXPECT_EQ(asked, 0U);
}

TEST(HpccSampled, requests_telemetry_for_all_packets_above_target) {  // H37
  Hpcc flow({}, "hpcc_sampled");
  flow.event.next = 50 * kPayload;
  flow.tell();
  flow.tell_after(5 * kTick, 5 * kFull);
  ASSERT_EQ(flow.state_name(), "above_target");
  for (int i = 0; i < 20; ++i) EXPECT_EQ(asked_by(flow.ack()), ROCI_CC_TELEMETRY_NEXT);
}

TEST(HpccSampled, repeats_request_after_ack_without_telemetry) {
  Hpcc flow({}, "hpcc_sampled");
  flow.event.next = 50 * kPayload;
  for (int i = 0; i < 5; ++i) flow.tell_after(5 * kTick, kFull);
  flow.event.next = 100 * kPayload;
  flow.tell_after(5 * kTick, kFull);
  for (int i = 7; i <= 100; ++i) ASSERT_EQ(asked_by(flow.ack()), 0U) << i;
  EXPECT_EQ(asked_by(flow.ack()), ROCI_CC_TELEMETRY_NEXT);
}

class Probing : public Hpcc {
 public:
  explicit Probing() : Hpcc({{"probe", 1}}, "hpcc_sampled") { path.flags = ROCI_CC_PATH_PROBE; }
  const roci_cc_decision& answer(uint32_t nanos, uint32_t units) {
    pass(nanos, units);
    event.path = &path;
    return call(ROCI_CC_ON_TELEMETRY | ROCI_CC_ON_RTT | ROCI_CC_ON_PROBE);
  }
};

TEST(HpccSampled, probes_once_per_round_trip_while_data_is_in_flight) {  // H25
  Probing flow;
  EXPECT_EQ(asked_by(flow.decision), 0U);
  EXPECT_EQ(flow.decision.sent_notice, 1U);
  flow.event.next = flow.event.in_flight = kPayload;
  EXPECT_EQ(asked_by(flow.call(ROCI_CC_ON_SENT)), ROCI_CC_SEND_PROBE);
  EXPECT_EQ(flow.decision.sent_notice, 0U);
  flow.event.next = 50 * kPayload;
  EXPECT_EQ(asked_by(flow.ack()), 0U) << "one is under way";
  EXPECT_EQ(asked_by(flow.answer(5 * kTick, kFull)), ROCI_CC_SEND_PROBE);
  EXPECT_EQ(flow.reason_name(), "first_sample");
  flow.event.in_flight = 0;
  EXPECT_EQ(asked_by(flow.answer(5 * kTick, kFull)), 0U) << "nothing is";
  EXPECT_EQ(flow.decision.sent_notice, 1U);
}

TEST(HpccSampled, probe_response_counts_as_ack_of_data_sent_before_the_probe) {
  Probing flow;
  flow.event.in_flight = 50 * kPayload;
  flow.event.next = 50 * kPayload;
  flow.call(ROCI_CC_ON_SENT);
  flow.answer(5 * kTick, 5 * kFull);  // stored; the next probe is sent
  flow.event.next = 100 * kPayload;
  flow.answer(5 * kTick, 5 * kFull);
  EXPECT_NEAR(flow.committed(), 49'955, 0.01) << "this one left behind the first: a new round";
  flow.event.next = 150 * kPayload;
  flow.answer(5 * kTick, 5 * kFull);
  EXPECT_NEAR(flow.committed(), 49'955 * 0.95 + 80, 0.01);
}

TEST(HpccSampled, abandons_probe_when_later_data_is_acknowledged) {
  Probing flow;
  flow.event.in_flight = 1;
  flow.event.next = 3 * kPayload;
  EXPECT_EQ(asked_by(flow.call(ROCI_CC_ON_SENT)), ROCI_CC_SEND_PROBE);
  flow.event.next = 10 * kPayload;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(asked_by(flow.ack()), 0U) << i;
  EXPECT_EQ(asked_by(flow.ack()), ROCI_CC_SEND_PROBE);
}

TEST(HpccSampled, requires_base_rtt_and_for_probes_a_responding_peer) {
  roci_cc_flow flow = Driver::usual_flow();
  const roci_cc_plugin& sampled = plugin("hpcc_sampled");
  Driver driver(sampled);
  EXPECT_EQ(sampled.check(&flow, driver.parameters.data()), nullptr);
  flow.base_rtt_ns = 0;
  EXPECT_STREQ(sampled.check(&flow, driver.parameters.data()), "t: 0 requires base_rtt");
  driver.parameters[driver.index_of("t")] = 5000;
  EXPECT_EQ(sampled.check(&flow, driver.parameters.data()), nullptr);
  driver.parameters[driver.index_of("probe")] = 1;
  flow.provides = 0;
  EXPECT_STREQ(sampled.check(&flow, driver.parameters.data()),
               "probe: 1 requires a peer that answers probes");
}

}  // namespace
}  // namespace roci::test
