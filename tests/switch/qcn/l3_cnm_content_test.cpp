// Values of self-defined CNMs in addition to the feedback, and their receivers.
#include "switch/qcn/l3_cnm_bench.hpp"
#include "wire/cnm/l3_congestion_notification.hpp"

namespace roci {
namespace {

using test::ip;
using test::kClass;
using test::kCnmPort;
using test::L3QcnTest;

class L3CnmContentTest : public L3QcnTest {
 protected:
  static SwitchConfig telling_spine(const QcnConfig::Contents& says) {
    SwitchConfig s = spine();
    s.ports[1].classes[kClass].qcn.contents = says;
    s.ports[1].classes[kClass].qcn.rtt = 20us;
    s.telemetry.enabled = true;
    s.telemetry.udp_port = 5201;
    s.telemetry.switch_id = 77;
    return s;
  }
  // All CNMs that the spine has sent to ToR A.
  std::vector<L3CnmView> said() {
    std::vector<L3CnmView> out;
    for (const auto& bytes : left_[1]) {
      out.push_back(parse_l3_cnm(bytes, kCnmPort));
      EXPECT_TRUE(out.back().accepted()) << l3_cnm_outcome_name(out.back().outcome);
    }
    return out;
  }
};

TEST_F(L3CnmContentTest, cnm_contains_port_state_and_ecn_counts) {
  SwitchConfig s = telling_spine({.port = true, .ecn = true});
  s.ports[1].classes[kClass].aqm.mark = {.kmin = Bytes{2000}, .kmax = Bytes{2000}};
  build(tor_a(), s, tor_b());
  for (uint32_t i = 0; i < 4; ++i) send(0, ecn_capable(frame(0, i)));
  wait(1ms);
  const auto views = said();
  ASSERT_EQ(views.size(), 3U) << "the first frame finds no congestion";
  const auto length = static_cast<uint32_t>(frame(2).size());
  for (uint32_t i = 0; i < 3; ++i) {
    const L3CnmTlvs& tlvs = views[i].tlvs;
    ASSERT_TRUE(tlvs.port && tlvs.ecn);
    EXPECT_FALSE(tlvs.available_bandwidth || tlvs.rate_change || tlvs.auth_sequence);
    EXPECT_EQ(tlvs.port->switch_id, 77U);
    EXPECT_EQ(tlvs.port->port, 1U);
    EXPECT_EQ(tlvs.port->rate(), 1_Gbps);
    EXPECT_EQ(tlvs.port->tx_units, 0U) << "all have come at one instant";
    EXPECT_EQ(tlvs.port->queue_bytes, ScaledCount::of((i + 2) * length));
    EXPECT_EQ(tlvs.ecn->packets, i + 2);
    EXPECT_EQ(tlvs.ecn->marked, i) << "the first two found less than 2000 bytes";
  }
  EXPECT_EQ(at_host_b().size(), 4U);
  EXPECT_EQ(heard(0).size(), 3U) << "in layer 2, which has no room for all that";
  EXPECT_EQ(events(tor_a_, CnmEvent::kTranslated), 3U);
}

TEST_F(L3CnmContentTest, cnm_without_congestion_contains_available_bandwidth_and_change) {
  build(tor_a(), telling_spine({.available_bandwidth = true, .rate_change = true}), tor_b());
  // 1,306 bytes per 20 us, with the overhead on the wire: 532 Mb/s of 1 Gb/s.
  for (uint32_t i = 0; i < 100; ++i) {
    send(0, frame(0, i));
    wait(20us);
  }
  wait(1ms);
  const auto views = said();
  ASSERT_EQ(views.size(), 100U) << "each frame is a sample";
  for (const L3CnmView& view : views) EXPECT_EQ(view.cnm.feedback, 0);
  const L3CnmTlvs& last = views.back().tlvs;
  EXPECT_EQ(last.available_bandwidth, 10'000U) << "the whole line, in 100 kb/s: nobody is in the way";
  // 0.4 of 468 Mb/s, less 0.226 of the rate of one frame per round trip, 522 Mb/s.
  ASSERT_TRUE(last.rate_change);
  EXPECT_NEAR(*last.rate_change, 692, 10);
  EXPECT_EQ(heard(0).size(), 0U) << "what layer 2 cannot say is not said there";
  EXPECT_EQ(events(tor_a_, CnmEvent::kNoFeedback), 100U);
  EXPECT_EQ(events(spine_, CnmEvent::kNoCongestion), 0U);
  EXPECT_EQ(at_host_b().size(), 100U);
}

TEST_F(L3CnmContentTest, overload_yields_negative_rate_changes_and_lower_bandwidth) {
  SwitchConfig s = telling_spine({.available_bandwidth = true, .rate_change = true});
  s.notify.rate = 1'000'000;
  build(tor_a(), s, tor_b());
  for (uint32_t i = 0; i < 100; ++i) {  // 2.1 Gb/s
    send(0, frame(0, i));
    wait(5us);
  }
  wait(10ms);
  const auto views = said();
  ASSERT_EQ(views.size(), 100U);
  uint32_t before = 10'000;
  for (size_t i = 20; i < views.size(); i += 20) {
    const L3CnmTlvs& tlvs = views[i].tlvs;
    EXPECT_TRUE(*tlvs.available_bandwidth < before || before == 1) << i;
    EXPECT_LT(*tlvs.rate_change, 0) << i;
    before = *tlvs.available_bandwidth;
  }
  EXPECT_LT(before, 100U);
  EXPECT_EQ(at_host_b().size(), 100U);
  heard(0);
}

TEST_F(L3CnmContentTest, sends_no_cnm_without_feedback_to_a_layer_2_source) {
  SwitchConfig a = tor_a();
  a.ports[1].rate = 1_Gbps;
  a.ports[1].classes[kClass] = test::qcn_class(true);
  a.ports[1].classes[kClass].qcn.contents = {.available_bandwidth = true};
  tor_a_alone(a);
  send(0, frame(0));
  wait(1ms);
  EXPECT_EQ(heard(0).size(), 0U);
  EXPECT_EQ(events(tor_a_, CnmEvent::kNoCongestion), 1U);
  EXPECT_EQ(discard_from_tor_a(), 1U);
}

TEST_F(L3CnmContentTest, tor_delivers_self_defined_cnms_to_hosts_when_configured) {
  SwitchConfig a = tor_a();
  a.notify.tor_unknown = NotifyConfig::UnknownFlow::kDeliver;
  build(a, telling_spine({.port = true, .available_bandwidth = true}), tor_b());
  const auto bare = without_cn_tag(frame(0));
  for (uint32_t i = 0; i < 3; ++i) send(0, bare);
  wait(1ms);
  const auto got = heard(0);
  ASSERT_EQ(got.size(), 3U);
  for (size_t i = 0; i < got.size(); ++i) {
    const L3CnmView view = parse_l3_cnm(got[i], kCnmPort);
    ASSERT_TRUE(view.accepted()) << l3_cnm_outcome_name(view.outcome);
    EXPECT_EQ(view.flow.source, ip("10.0.1.2"));
    EXPECT_EQ(view.tlvs.port->switch_id, 77U);
    EXPECT_TRUE(view.tlvs.available_bandwidth);
  }
  EXPECT_EQ(events(tor_a_, CnmEvent::kDelivered), 3U);
  EXPECT_EQ(at_host_b().size(), 3U);
}

TEST_F(L3CnmContentTest, congested_tor_sends_self_defined_cnms_to_its_hosts) {
  SwitchConfig a = tor_a();
  a.notify.tor_unknown = NotifyConfig::UnknownFlow::kDeliver;
  a.ports[1].rate = 1_Gbps;
  a.ports[1].classes[kClass] = test::qcn_class(true);
  a.ports[1].classes[kClass].qcn.contents = {.rate_change = true};
  tor_a_alone(a);
  const auto bare = without_cn_tag(frame(0));
  for (uint32_t i = 0; i < 3; ++i) send(0, bare);
  wait(1ms);
  const auto got = heard(0);
  ASSERT_EQ(got.size(), 3U);
  for (const auto& bytes : got) EXPECT_TRUE(parse_l3_cnm(bytes, kCnmPort).tlvs.rate_change);
  EXPECT_EQ(events(tor_a_, CnmEvent::kSentOverIp), 3U);
  EXPECT_EQ(discard_from_tor_a(), 3U);
}

TEST_F(L3CnmContentTest, invalid_contents_are_rejected_with_the_reason) {
  SwitchConfig s = spine();
  s.ports[1].classes[kClass].qcn.contents.port = true;
  EXPECT_EQ(check(s).error().message,
            "switch 'spine': port 'p1': class 5: additional_values: port requires telemetry of the switch");
  s = telling_spine({.rate_change = true});
  s.ports[1].rate = BitsPerSec{0};
  EXPECT_EQ(check(s).error().message,
            "switch 'spine': port 'p1': class 5: the rates in additional_values require a rate of the port");
  s = telling_spine({.ecn = true});
  s.ports[1].classes[kClass].qcn.l3 = false;
  EXPECT_EQ(check(s).error().message,
            "switch 'spine': port 'p1': class 5: qcn: additional_values requires l3; layer-2 CNMs contain "
            "only the feedback");
  s = telling_spine({.ecn = true});
  s.ports[1].classes[kClass].qcn.rtt = Nanos{0};
  EXPECT_FALSE(check(s));
}

}  // namespace
}  // namespace roci
