// Congestion notification through routers: host A - ToR A - spine - ToR B - host B. The spine's port to ToR B is
// congested, so the spine sends self-defined CNMs. ToR A translates them to CNMs that host A supports.
#include "switch/qcn/l3_cnm_bench.hpp"
#include "wire/cnm/l3_congestion_notification.hpp"

namespace roci {
namespace {

using test::ip;
using test::kClass;
using test::kCnmPort;
using test::L3QcnTest;
using test::net;
using test::qcn_class;

TEST_F(L3QcnTest, tor_translates_cnms_of_the_spine_to_layer_2_cnms_for_the_host) {
  build(tor_a(), spine(), tor_b());
  for (uint32_t i = 0; i < 3; ++i) send(0, frame(0, i));
  wait(1ms);
  // The frames on each link: the first router removes the CN-TAG.
  for (unsigned hop = 0; hop < 4; ++hop) {
    ASSERT_EQ(right_[hop].size(), 3U) << hop;
    for (uint32_t i = 0; i < 3; ++i) {
      EXPECT_EQ(right_[hop][i], frame(hop, i)) << hop << " " << i;
    }
  }
  EXPECT_EQ(at_host_b().size(), 3U);
  // The two messages in the reverse direction.
  ASSERT_EQ(left_[1].size(), 2U);
  ASSERT_EQ(left_[0].size(), 2U);
  const auto got = heard(0);
  ASSERT_EQ(got.size(), 2U);
  for (uint32_t i = 0; i < 2; ++i) {
    EXPECT_EQ(left_[1][i], self_defined(i + 1, i + 1, be16_at(left_[1][i], 34))) << i;
    EXPECT_EQ(got[i], cnm_for_host(i + 1, i + 1)) << i;
    EXPECT_EQ(left_[0][i], got[i]);
  }
  EXPECT_TRUE(left_[2].empty());
  EXPECT_TRUE(left_[3].empty());
  EXPECT_EQ(events(tor_a_, CnmEvent::kFlowLearned), 1U);
  EXPECT_EQ(events(tor_a_, CnmEvent::kTagRemoved), 3U);
  EXPECT_EQ(events(tor_a_, CnmEvent::kTranslated), 2U);
  EXPECT_EQ(events(spine_, CnmEvent::kSentOverIp), 2U);
}

TEST_F(L3QcnTest, congested_tor_sends_layer_2_cnms_to_its_own_host) {
  SwitchConfig a = tor_a();
  a.ports[1].rate = 1_Gbps;
  a.ports[1].classes[kClass] = qcn_class(true);
  tor_a_alone(a);
  for (uint32_t i = 0; i < 3; ++i) send(0, frame(0, i));
  wait(1ms);
  const auto got = heard(0);
  ASSERT_EQ(got.size(), 2U);
  for (const auto& bytes : got) {
    const auto cnm = parse_cnm_frame(bytes);
    EXPECT_EQ(cnm.outcome, CnmOutcome::kAccepted);
    EXPECT_EQ(cnm.link.destination, mac_of(kHostA));
    EXPECT_EQ(cnm.link.tags.flow, 0x1234);
    EXPECT_EQ(cnm.cnm.destination, mac_of(kTorA)) << "where the host had sent the frame";
    EXPECT_EQ(cnm.cnm.priority, kClass);
  }
  EXPECT_EQ(events(tor_a_, CnmEvent::kSentToOwnHost), 2U);
}

TEST_F(L3QcnTest, congested_tor_sends_no_cnm_to_hosts_without_cn_tags) {
  SwitchConfig a = tor_a();
  a.ports[1].rate = 1_Gbps;
  a.ports[1].classes[kClass] = qcn_class(true);
  tor_a_alone(a);
  const auto bare = without_cn_tag(frame(0));
  for (uint32_t i = 0; i < 3; ++i) send(0, bare);
  wait(1ms);
  EXPECT_EQ(heard(0).size(), 0U);
  EXPECT_EQ(events(tor_a_, CnmEvent::kUnknownFlow), 2U);
  EXPECT_EQ(discard_from_tor_a(), 3U);
}

TEST_F(L3QcnTest, without_a_buffer_no_cnm_is_sent_and_no_frame_is_lost) {
  SwitchConfig a = tor_a();
  a.ports[1].rate = 1_Gbps;
  a.ports[1].classes[kClass] = qcn_class(true);
  tor_a_alone(a);
  for (uint32_t i = 0; i < 3; ++i) send(0, frame(0, i));
  std::vector<rte_mbuf*> taken;
  while (rte_mbuf* m = rte_pktmbuf_alloc(pool_->get())) taken.push_back(m);
  wait(1ms);
  for (rte_mbuf* m : taken) rte_pktmbuf_free(m);
  EXPECT_EQ(heard(0).size(), 0U);
  EXPECT_EQ(events(tor_a_, CnmEvent::kNoBuffer), 2U);
  EXPECT_EQ(discard_from_tor_a(), 3U);
}

TEST_F(L3QcnTest, cnm_in_several_segments_is_translated) {
  tor_a_alone(tor_a());
  send(0, frame(0));
  settle();
  const auto bytes = self_defined(1, 1, 0xc000);
  rte_mbuf* head = test::to_mbuf(*pool_, {bytes.begin(), bytes.begin() + 100});
  rte_mbuf* tail = test::to_mbuf(*pool_, {bytes.begin() + 100, bytes.end()});
  ASSERT_EQ(rte_pktmbuf_chain(head, tail), 0);
  ASSERT_EQ(links_[1]->b().tx_burst({&head, 1}, runner_.now()), 1);
  settle();
  const auto got = heard(0);
  ASSERT_EQ(got.size(), 1U);
  EXPECT_EQ(got[0], cnm_for_host(1, 1));
  discard_from_tor_a();
}

TEST_F(L3QcnTest, without_a_route_to_the_source_no_cnm_is_sent) {
  SwitchConfig s = spine();
  s.routes.erase(s.routes.begin());
  build(tor_a(), s, tor_b());
  for (uint32_t i = 0; i < 3; ++i) send(0, frame(0, i));
  wait(1ms);
  EXPECT_EQ(events(spine_, CnmEvent::kNoRoute), 2U);
  EXPECT_TRUE(left_[1].empty());
  (void)at_host_b();
}

TEST_F(L3QcnTest, cnm_for_an_unknown_flow_is_dropped) {
  tor_a_alone(tor_a());
  send_to_tor_a(self_defined(1, 1, 0xc000));
  EXPECT_EQ(heard(0).size(), 0U);
  EXPECT_EQ(events(tor_a_, CnmEvent::kUnknownFlow), 1U);
  EXPECT_EQ(tor_a_->counters(1).dropped(DropReason::kNotification), 1U);
}

TEST_F(L3QcnTest, flow_expires_after_the_ageing_time) {
  SwitchConfig a = tor_a();
  a.notify.tor_ageing = 10ms;
  tor_a_alone(a);
  send(0, frame(0));
  settle();
  wait(9ms);
  send_to_tor_a(self_defined(1, 1, 0xc000));
  EXPECT_EQ(heard(0).size(), 1U);
  wait(1ms);
  send_to_tor_a(self_defined(1, 1, 0xc000));
  EXPECT_EQ(heard(0).size(), 0U);
  EXPECT_EQ(events(tor_a_, CnmEvent::kUnknownFlow), 1U);
  discard_from_tor_a();
}

TEST_F(L3QcnTest, full_flow_table_forwards_frames_without_learning) {
  SwitchConfig a = tor_a();
  a.notify.tor_size = 1;
  tor_a_alone(a);
  send(0, frame(0));
  auto other = frame(0);
  other[14 + 4 + 4 + 20 + 1] ^= 1;  // different UDP source port
  for (int i = 0; i < 2; ++i) send(0, other);
  settle();
  EXPECT_EQ(events(tor_a_, CnmEvent::kFlowLearned), 1U);
  EXPECT_EQ(events(tor_a_, CnmEvent::kFlowsFull), 2U);
  EXPECT_EQ(discard_from_tor_a(), 3U);
}

TEST_F(L3QcnTest, cnm_rate_to_the_host_is_limited) {
  SwitchConfig a = tor_a();
  a.notify.rate = 1000;
  tor_a_alone(a);
  send(0, frame(0));
  settle();
  for (int i = 0; i < 100; ++i) send_to_tor_a(self_defined(1, 1, 0xc000));
  EXPECT_EQ(heard(0).size(), size_t{EventLimit::kAtOnce});
  EXPECT_EQ(events(tor_a_, CnmEvent::kTooMany), 100U - EventLimit::kAtOnce);
  wait(3ms);
  for (int i = 0; i < 10; ++i) send_to_tor_a(self_defined(1, 1, 0xc000));
  EXPECT_EQ(heard(0).size(), 3U);
  discard_from_tor_a();
}

TEST_F(L3QcnTest, damaged_cnms_are_dropped_or_translated_to_valid_cnms) {
  tor_a_alone(tor_a());
  send(0, frame(0));
  settle();
  const auto right = self_defined(1, 1, 0xc000);
  constexpr size_t kPayload = 14 + 20 + 8;
  for (size_t at = kPayload; at < right.size(); ++at) {
    auto wrong = right;
    wrong[at] ^= 0x10;
    send_to_tor_a(wrong);
  }
  EXPECT_EQ(heard(0).size(), 0U) << "the checksum of UDP";
  EXPECT_EQ(events(tor_a_, CnmEvent::kMalformed), right.size() - kPayload);
  const auto unknown = events(tor_a_, CnmEvent::kUnknownFlow);
  for (size_t at = kPayload; at < right.size(); ++at) {  // the same without a UDP checksum
    auto wrong = right;
    wrong[at] ^= 0x10;
    wrong[40] = wrong[41] = 0;
    send_to_tor_a(wrong);
    wait(1ms);  // for the rate limit
  }
  const auto translated = heard(0);
  EXPECT_GT(translated.size(), 0U);
  const auto dropped = events(tor_a_, CnmEvent::kMalformed) - (right.size() - kPayload) +
                       events(tor_a_, CnmEvent::kUnknownFlow) - unknown;
  EXPECT_EQ(translated.size() + dropped, right.size() - kPayload);
  for (const auto& bytes : translated) EXPECT_EQ(parse_cnm_frame(bytes).outcome, CnmOutcome::kAccepted);
  for (size_t length = 15; length < right.size(); ++length)
    send_to_tor_a({right.begin(), right.begin() + static_cast<std::ptrdiff_t>(length)});
  EXPECT_EQ(heard(0).size(), 0U) << "cut";
  discard_from_tor_a();
}

TEST_F(L3QcnTest, cnm_for_a_remote_host_is_forwarded) {
  SwitchConfig a = tor_a();
  a.routes.push_back({net("10.0.3.0/24"), {ip("10.100.1.2")}});
  tor_a_alone(a);
  std::vector<uint8_t> bytes(kMaxL3CnmFrame);
  Cnm cnm;
  cnm.feedback = 3;
  const FiveTuple flow{ip("10.0.3.2"), ip("10.0.1.2"), 17, 1, 2};
  bytes.resize(build_l3_cnm({.source_mac = mac_of(kHostA),
                             .destination_mac = mac_of(kTorA),
                             .source_ip = flow.destination,
                             .destination_ip = flow.source},
                            kCnmPort, flow, cnm, {}, bytes));
  send(0, bytes);
  settle();
  EXPECT_EQ(discard_from_tor_a(), 1U);
  EXPECT_EQ(tor_a_->counters(0).dropped(), 0U);
}

TEST_F(L3QcnTest, cn_tags_from_outside_the_domain_are_ignored) {
  SwitchConfig a = tor_a();
  a.ports[0].keeps_cn_tags = false;
  tor_a_alone(a);
  send(0, frame(0));
  settle();
  EXPECT_EQ(events(tor_a_, CnmEvent::kFlowLearned), 0U);
  EXPECT_EQ(discard_from_tor_a(), 1U) << "but routed, without it";
}

}  // namespace
}  // namespace roci
