// CNMs from a congested queue to senders in the same layer 2 network.
#include "switch/qcn/cnm_bench.hpp"
#include "switch/switch_bench.hpp"

namespace roci {
namespace {

using test::CnmBytes;
using test::FrameSpec;
using test::kClass;
using test::kTos;
using test::msdu_of;
using test::qcn_class;
using test::Said;
using test::with_cn_tag;

class QcnTest : public SwitchTest {
 protected:
  static constexpr uint32_t kPayload = 1244;  // 1306 bytes with a CN-TAG
  static FrameSpec spec_of(const IpAddress& from, const IpAddress& to) {
    return {.from = from, .to = to, .traffic_class = kTos, .payload = kPayload};
  }
  uint64_t events(CnmEvent event) { return switch_->cnm_counts().of(event); }
};

TEST_F(QcnTest, sends_cnm_with_the_tags_of_the_sampled_frame_to_its_source) {
  SwitchConfig config = ports(2);
  config.ports[1].rate = 1_Mbps;
  config.ports[1].classes[kClass] = qcn_class();
  make(config);
  introduce({0, 1});
  FrameSpec spec{
      .destination = host_mac(1), .source = host_mac(0), .vlan = 0xa000 | 1, .traffic_class = kTos};
  spec.payload = kPayload;
  const auto sent = with_cn_tag(test::roce_bytes(spec), 0xbeef);
  // The first frame is sent at the end of each poll. Frames of the same poll are queued.
  for (int i = 0; i < 3; ++i) send(0, sent);
  settle();
  // VLAN 1 is untagged, so the switch removes the tag.
  std::vector<uint8_t> queued = sent;
  queued.erase(queued.begin() + 12, queued.begin() + 16);
  const auto answers = heard(0);
  ASSERT_EQ(answers.size(), 2U) << "one frame is no congestion";
  for (uint32_t i = 0; i < 2; ++i) {
    const Said said{i + 1, queued.size()};
    CnmBytes expected;
    expected.mac(host_mac(0)).mac(switch_->mac());
    expected.be16(0x22e9).be16(0xbeef).be16(0x22e7);
    expected.be16(said.feedback).mac(switch_->mac()).be16(1 * 8 + kClass);
    expected.be16(said.offset).be16(said.delta).be16(kClass << 13).mac(host_mac(1)).be16(64);
    expected.bytes(msdu_of(queued, 16));
    EXPECT_EQ(answers[i], expected.get()) << i;
  }
  EXPECT_EQ(events(CnmEvent::kSent), 2U);
  EXPECT_EQ(events(CnmEvent::kNoCongestion), 1U);
}

TEST_F(QcnTest, frame_without_cn_tag_causes_no_cnm) {
  SwitchConfig config = ports(2);
  config.ports[1].rate = 1_Mbps;
  config.ports[1].classes[kClass] = qcn_class();
  make(config);
  introduce({0, 1});
  for (int i = 0; i < 3; ++i) {
    send(
        0,
        test::roce_bytes(
            {.destination = host_mac(1), .source = host_mac(0), .traffic_class = kTos, .payload = kPayload}));
  }
  settle();
  EXPECT_EQ(heard(0).size(), 0U);
  EXPECT_EQ(events(CnmEvent::kNoFlow), 2U);
  EXPECT_EQ(events(CnmEvent::kSent), 0U);
}

TEST_F(QcnTest, domain_edge_removes_cn_tags_and_returns_them_in_cnms) {
  SwitchConfig config = ports(2);
  config.ports[1].rate = 1_Gbps;
  config.ports[1].keeps_cn_tags = false;
  config.ports[1].classes[kClass] = qcn_class();
  make(config);
  introduce({0, 1});
  const auto bare = test::roce_bytes(
      {.destination = host_mac(1), .source = host_mac(0), .traffic_class = kTos, .payload = kPayload});
  for (int i = 0; i < 3; ++i) send(0, with_cn_tag(bare, 77));
  wait(1ms);
  const auto got = heard(1);
  ASSERT_EQ(got.size(), 3U);
  for (const auto& frame : got) EXPECT_EQ(frame, bare);
  EXPECT_EQ(events(CnmEvent::kTagRemoved), 3U);
  const auto answers = heard(0);
  ASSERT_EQ(answers.size(), 2U);
  EXPECT_EQ(parse_cnm_frame(answers[0]).link.tags.flow, 77);
}

TEST_F(QcnTest, cn_tag_before_a_vlan_tag_is_ignored) {
  SwitchConfig config = ports(2);
  config.ports[1].keeps_cn_tags = false;
  make(config);
  introduce({0, 1});
  auto bytes = test::roce_bytes({.destination = host_mac(1), .source = host_mac(0), .vlan = 7});
  const std::array<uint8_t, 4> tag{0x22, 0xe9, 0, 1};
  bytes.insert(bytes.begin() + 12, tag.begin(), tag.end());
  send(0, bytes);
  settle();
  const auto got = heard(1);
  ASSERT_EQ(got.size(), 1U);
  EXPECT_EQ(got[0], bytes) << "it stays in its VLAN";
  EXPECT_EQ(events(CnmEvent::kTagRemoved), 0U);
}

TEST_F(QcnTest, cnm_rate_is_limited) {
  SwitchConfig config = ports(2);
  config.notify.rate = 1000;
  config.ports[1].rate = 1_Mbps;
  config.ports[1].classes[kClass] = qcn_class();
  make(config);
  introduce({0, 1});
  const auto sent = with_cn_tag(
      test::roce_bytes(
          {.destination = host_mac(1), .source = host_mac(0), .traffic_class = kTos, .payload = kPayload}),
      1);
  for (int i = 0; i < 101; ++i) send(0, sent);
  settle();
  EXPECT_EQ(heard(0).size(), size_t{EventLimit::kAtOnce});
  EXPECT_EQ(events(CnmEvent::kLimited), 100U - EventLimit::kAtOnce);
  wait(5ms);
  for (int i = 0; i < 10; ++i) send(0, sent);
  settle();
  EXPECT_EQ(heard(0).size(), 5U) << "1,000 a second";
}

TEST_F(QcnTest, sends_no_cnm_for_a_sampled_cnm_or_to_an_unknown_source) {
  SwitchConfig config = ports(3);
  config.mac_table_size = 1;
  config.ports[1].rate = 1_Mbps;
  for (ClassConfig& c : config.ports[1].classes) c = qcn_class();
  make(config);
  introduce({1});
  Cnm cnm;
  std::vector<uint8_t> bytes(1400);
  cnm.feedback = 5;
  const CnmLink link{host_mac(1), host_mac(0), {.flow = 3}};
  build_cnm_frame(link, cnm, bytes);
  for (int i = 0; i < 3; ++i) send(0, bytes);
  settle();
  EXPECT_EQ(events(CnmEvent::kSampledCnm), 2U);
  const auto sent = with_cn_tag(
      test::roce_bytes(
          {.destination = host_mac(1), .source = host_mac(0), .traffic_class = kTos, .payload = kPayload}),
      1);
  for (int i = 0; i < 3; ++i) send(0, sent);
  settle();
  EXPECT_EQ(events(CnmEvent::kNoRoute), 2U);
  EXPECT_EQ(heard(0).size() + heard(2).size(), 0U);
}

TEST_F(QcnTest, packet_with_cn_tag_is_marked_with_ce) {
  SwitchConfig config = ports(2);
  config.ports[1].classes[kClass].aqm.mark = {.kmin = Bytes{0}, .kmax = Bytes{0}};
  make(config);
  introduce({0, 1});
  FrameSpec spec{.destination = host_mac(1), .source = host_mac(0), .traffic_class = kTos | 2};
  send(0, with_cn_tag(test::roce_bytes(spec), 1));
  settle();
  const auto got = heard(1);
  ASSERT_EQ(got.size(), 1U);
  spec.traffic_class |= 3;
  EXPECT_EQ(got[0], with_cn_tag(test::roce_bytes(spec), 1));
}

}  // namespace
}  // namespace roci
