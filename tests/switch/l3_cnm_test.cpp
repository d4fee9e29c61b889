// Congestion notification through routers: host A - ToR A - spine - ToR B - host B, where the spine is congested towards
// ToR B, says so in self-defined CNMs, and ToR A makes of them what host A understands.
#include "switch/cnm_bench.hpp"
#include "switch/switch_bench.hpp"
#include "wire/l3_congestion_notification.hpp"

namespace roci {
namespace {

using test::CnmBytes;
using test::FrameSpec;
using test::ip;
using test::kClass;
using test::kCnmPort;
using test::kTos;
using test::msdu_of;
using test::net;
using test::qcn_class;
using test::Said;
using test::with_cn_tag;

struct Network {
  const char* name;
  uint8_t mac;
  // Of its two ports: VLAN and the switch's own address, the next hop behind it and where that leads.
  std::array<uint16_t, 2> vlan;
  std::array<const char*, 2> address;
  std::array<const char*, 2> neighbour;
  std::array<uint8_t, 2> neighbour_mac;
};

class L3QcnTest : public SwitchTest {
 protected:
  static MacAddress mac_of(uint8_t last) { return {{2, 0, 0, 0, 9, last}}; }
  static constexpr uint8_t kTorA = 1, kSpine = 2, kTorB = 3, kHostA = 0xa, kHostB = 0xb;

  static SwitchConfig config_of(const Network& n) {
    SwitchConfig config = ports(2);
    config.name = n.name;
    config.mac = mac_of(n.mac);
    config.notify.port = kCnmPort;
    for (size_t i = 0; i < 2; ++i) {
      config.ports[i].vlan = n.vlan[i];
      config.ports[i].all_tagged = false;
      config.interfaces.push_back(
          {.name = "i" + std::to_string(i), .vlan = n.vlan[i], .addresses = {net(n.address[i])}});
      config.neighbours.push_back({ip(n.neighbour[i]), mac_of(n.neighbour_mac[i])});
    }
    return config;
  }
  static SwitchConfig tor_a() {
    SwitchConfig config = config_of({.name = "tor_a",
                                     .mac = kTorA,
                                     .vlan = {10, 100},
                                     .address = {"10.0.1.1/24", "10.100.1.1/24"},
                                     .neighbour = {"10.0.1.2", "10.100.1.2"},
                                     .neighbour_mac = {kHostA, kSpine}});
    config.routes = {{net("10.0.2.0/24"), {ip("10.100.1.2")}}};
    config.notify.tor_size = 4;
    return config;
  }
  static SwitchConfig spine() {
    SwitchConfig config = config_of({.name = "spine",
                                     .mac = kSpine,
                                     .vlan = {100, 200},
                                     .address = {"10.100.1.2/24", "10.100.2.2/24"},
                                     .neighbour = {"10.100.1.1", "10.100.2.1"},
                                     .neighbour_mac = {kTorA, kTorB}});
    config.routes = {{net("10.0.1.0/24"), {ip("10.100.1.1")}}, {net("10.0.2.0/24"), {ip("10.100.2.1")}}};
    config.ports[1].rate = 1_Gbps;
    config.ports[1].classes[kClass] = qcn_class(true);
    return config;
  }
  static SwitchConfig tor_b() {
    SwitchConfig config = config_of({.name = "tor_b",
                                     .mac = kTorB,
                                     .vlan = {20, 200},
                                     .address = {"10.0.2.1/24", "10.100.2.1/24"},
                                     .neighbour = {"10.0.2.2", "10.100.2.2"},
                                     .neighbour_mac = {kHostB, kSpine}});
    config.routes = {{net("10.0.1.0/24"), {ip("10.100.2.2")}}};
    config.notify.tor_size = 4;
    return config;
  }

  // Links: 0 host A - ToR A, 1 ToR A - spine, 2 spine - ToR B, 3 ToR B - host B; each seen from the left.
  void build(const SwitchConfig& a, const SwitchConfig& s, const SwitchConfig& b) {
    for (size_t i = 0; i < 4; ++i) {
      links_.push_back(std::make_unique<SimLink>(SimLinkConfig{.name = "link" + std::to_string(i)}, pool_));
      runner_.add(*links_.back());
      const auto record = [](std::vector<std::vector<uint8_t>>& to) {
        return [&to](const rte_mbuf& frame, uint64_t) {
          to.push_back(test::bytes_of(&frame));
          return SimVerdict{};
        };
      };
      links_.back()->set_script(SimLink::Direction::kAToB, record(right_[i]));
      links_.back()->set_script(SimLink::Direction::kBToA, record(left_[i]));
    }
    add(tor_a_, a, {&links_[0]->b(), &links_[1]->a()});
    add(spine_, s, {&links_[1]->b(), &links_[2]->a()});
    add(tor_b_, b, {&links_[3]->a(), &links_[2]->b()});
  }
  void add(std::unique_ptr<Switch>& to, const SwitchConfig& config, const std::vector<Port*>& ends) {
    auto made = Switch::create(config, ends, pool_);
    ASSERT_TRUE(made) << made.error().message;
    to = std::move(*made);
    runner_.add(*to);
  }
  void TearDown() override {
    tor_a_.reset();
    spine_.reset();
    tor_b_.reset();
    SwitchTest::TearDown();
  }
  std::vector<std::vector<uint8_t>> at_host_b() {
    std::vector<std::vector<uint8_t>> out;
    rte_mbuf* frame = nullptr;
    while (links_[3]->b().rx_burst({&frame, 1}, runner_.now()) == 1) {
      out.push_back(test::bytes_of(frame));
      rte_pktmbuf_free(frame);
    }
    return out;
  }

  // A flow of host A to host B, as it is on the way behind `hops` routers. The tag's priority is 5.
  static std::vector<uint8_t> frame(unsigned hops, uint32_t number = 0, uint16_t cn_flow = 0x1234) {
    constexpr std::array<std::pair<uint8_t, uint8_t>, 4> kMacs{
        {{kHostA, kTorA}, {kTorA, kSpine}, {kSpine, kTorB}, {kTorB, kHostB}}};
    FrameSpec spec{.destination = mac_of(kMacs[hops].second),
                   .source = mac_of(kMacs[hops].first),
                   .from = ip("10.0.1.2"),
                   .to = ip("10.0.2.2"),
                   .traffic_class = kTos,
                   .payload = 1244,
                   .number = number};
    spec.ttl = static_cast<uint8_t>(64 - hops);
    spec.vlan = 0xa000;  // a priority tag, which stays where VLANs go untagged
    const auto bytes = test::roce_bytes(spec);
    return hops == 0 ? with_cn_tag(bytes, cn_flow) : bytes;
  }
  // What the congestion point says of the n-th frame (from 0) that it has queued.
  static CnmBytes pdu(uint32_t n, const MacAddress& destination, const std::vector<uint8_t>& sampled) {
    const Said said{n, sampled.size()};
    CnmBytes out;
    out.be16(said.feedback).mac(mac_of(kSpine)).be16(1 * 8 + kClass);
    out.be16(said.offset).be16(said.delta).be16(kClass << 13);
    return out.mac(destination).be16(64).bytes(msdu_of(sampled, 16));
  }
  static std::vector<uint8_t> cnm_for_host(uint32_t n, uint32_t number) {
    CnmBytes out;
    out.mac(mac_of(kHostA)).mac(mac_of(kTorA)).be16(0x8100).be16(6 << 13).be16(0x22e9).be16(0x1234);
    return out.be16(0x22e7).bytes(pdu(n, mac_of(kTorA), frame(2, number)).get()).get();
  }
  // The self-defined CNM behind `hops` routers beyond the spine, with checksums made here.
  static std::vector<uint8_t> self_defined(uint32_t n, uint32_t number, uint16_t source_port) {
    const auto payload = pdu(n, mac_of(kTorB), frame(2, number)).get();
    const auto udp = static_cast<uint32_t>(8 + 16 + payload.size());
    CnmBytes ip_part;
    ip_part.be16(0x4500 | 48 << 2 | 2).be16(20 + udp).be16(0).be16(0x4000).be16(64 << 8 | 17);
    auto header = ip_part;
    const std::vector<uint8_t> addresses{10, 0, 2, 2, 10, 0, 1, 2};
    header.be16(0).bytes(addresses);
    CnmBytes body;
    body.be16(source_port).be16(kCnmPort).be16(udp).be16(0);
    body.be16(0x1100).be16(17 << 8).bytes({10, 0, 1, 2, 10, 0, 2, 2}).be16(49152).be16(4791).bytes(payload);
    const auto sum = [](const std::vector<uint8_t>& of, uint32_t start) {
      uint32_t s = start;
      for (size_t i = 0; i < of.size(); i += 2)
        s += static_cast<uint32_t>(of[i] << 8) + (i + 1 < of.size() ? of[i + 1] : 0U);
      while (s >> 16 != 0) s = (s & 0xffff) + (s >> 16);
      return static_cast<uint16_t>(~s);
    };
    const uint16_t ip_sum = sum(header.get(), 0);
    const uint16_t udp_sum = sum(body.get(), 17 + udp + 10 * 256 + 2 * 256 + 2 + 10 * 256 + 1 * 256 + 2);
    CnmBytes out;
    out.mac(mac_of(kTorA))
        .mac(mac_of(kSpine))
        .be16(0x0800)
        .bytes(ip_part.get())
        .be16(ip_sum)
        .bytes(addresses);
    std::vector<uint8_t> tail = body.get();
    tail[6] = static_cast<uint8_t>(udp_sum >> 8);
    tail[7] = static_cast<uint8_t>(udp_sum);
    return out.bytes(tail).get();
  }
  // Bytes as they are in a frame that has come to a host.
  static uint16_t be16_at(const std::vector<uint8_t>& bytes, size_t at) {
    return static_cast<uint16_t>(bytes[at] << 8 | bytes[at + 1]);
  }
  static uint64_t events(const std::unique_ptr<Switch>& of, CnmEvent event) {
    return of->cnm_counts().of(event);
  }
  // A self-defined CNM comes to ToR A from the spine, which is not there.
  void send_to_tor_a(const std::vector<uint8_t>& bytes) {
    rte_mbuf* m = test::to_mbuf(*pool_, bytes);
    ASSERT_EQ(links_[1]->b().tx_burst({&m, 1}, runner_.now()), 1);
    settle();
  }
  // How many frames ToR A has sent to the spine, which is not there.
  size_t discard_from_tor_a() {
    size_t count = 0;
    rte_mbuf* m = nullptr;
    for (; links_[1]->b().rx_burst({&m, 1}, runner_.now()) == 1; ++count) rte_pktmbuf_free(m);
    return count;
  }
  void tor_a_alone(const SwitchConfig& config) {
    for (size_t i = 0; i < 2; ++i) {
      links_.push_back(std::make_unique<SimLink>(SimLinkConfig{.name = "link" + std::to_string(i)}, pool_));
      runner_.add(*links_.back());
    }
    add(tor_a_, config, {&links_[0]->b(), &links_[1]->a()});
  }

  std::array<std::vector<std::vector<uint8_t>>, 4> right_, left_;
  std::unique_ptr<Switch> tor_a_, spine_, tor_b_;
};

TEST_F(L3QcnTest, a_host_hears_of_congestion_beyond_two_routers_as_if_it_were_in_its_own_network) {
  build(tor_a(), spine(), tor_b());
  for (uint32_t i = 0; i < 3; ++i) send(0, frame(0, i));
  wait(1ms);
  // The frames on their way: the CN-TAG ends at the first router.
  for (unsigned hop = 0; hop < 4; ++hop) {
    ASSERT_EQ(right_[hop].size(), 3U) << hop;
    for (uint32_t i = 0; i < 3; ++i) {
      EXPECT_EQ(right_[hop][i], frame(hop, i)) << hop << " " << i;
    }
  }
  EXPECT_EQ(at_host_b().size(), 3U);
  // And the two messages back.
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
  EXPECT_EQ(events(tor_a_, CnmEvent::kFlowLearnt), 1U);
  EXPECT_EQ(events(tor_a_, CnmEvent::kTagRemoved), 3U);
  EXPECT_EQ(events(tor_a_, CnmEvent::kTranslated), 2U);
  EXPECT_EQ(events(spine_, CnmEvent::kSentOverIp), 2U);
}

TEST_F(L3QcnTest, a_congested_tor_answers_its_own_host_without_the_detour) {
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

TEST_F(L3QcnTest, a_congested_tor_leaves_hosts_alone_that_send_no_cn_tags) {
  SwitchConfig a = tor_a();
  a.ports[1].rate = 1_Gbps;
  a.ports[1].classes[kClass] = qcn_class(true);
  tor_a_alone(a);
  auto bare = frame(0);
  bare.erase(bare.begin() + 16, bare.begin() + 20);
  for (uint32_t i = 0; i < 3; ++i) send(0, bare);
  wait(1ms);
  EXPECT_EQ(heard(0).size(), 0U);
  EXPECT_EQ(events(tor_a_, CnmEvent::kUnknownFlow), 2U);
  EXPECT_EQ(discard_from_tor_a(), 3U);
}

TEST_F(L3QcnTest, without_a_buffer_nothing_is_sent_and_nothing_else_is_lost) {
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

TEST_F(L3QcnTest, a_message_in_several_segments_is_translated) {
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

TEST_F(L3QcnTest, without_a_route_to_the_source_nothing_is_sent) {
  SwitchConfig s = spine();
  s.routes.erase(s.routes.begin());
  build(tor_a(), s, tor_b());
  for (uint32_t i = 0; i < 3; ++i) send(0, frame(0, i));
  wait(1ms);
  EXPECT_EQ(events(spine_, CnmEvent::kNoRoute), 2U);
  EXPECT_TRUE(left_[1].empty());
  (void)at_host_b();
}

TEST_F(L3QcnTest, a_message_for_a_flow_that_the_tor_does_not_know_is_dropped) {
  tor_a_alone(tor_a());
  send_to_tor_a(self_defined(1, 1, 0xc000));
  EXPECT_EQ(heard(0).size(), 0U);
  EXPECT_EQ(events(tor_a_, CnmEvent::kUnknownFlow), 1U);
  EXPECT_EQ(tor_a_->counters(1).dropped(DropReason::kNotification), 1U);
}

TEST_F(L3QcnTest, a_flow_is_forgotten_after_its_time) {
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

TEST_F(L3QcnTest, a_full_table_forwards_what_it_cannot_learn) {
  SwitchConfig a = tor_a();
  a.notify.tor_size = 1;
  tor_a_alone(a);
  send(0, frame(0));
  auto other = frame(0);
  other[14 + 4 + 4 + 20 + 1] ^= 1;  // another UDP source port
  for (int i = 0; i < 2; ++i) send(0, other);
  settle();
  EXPECT_EQ(events(tor_a_, CnmEvent::kFlowLearnt), 1U);
  EXPECT_EQ(events(tor_a_, CnmEvent::kFlowsFull), 2U);
  EXPECT_EQ(discard_from_tor_a(), 3U);
}

TEST_F(L3QcnTest, a_storm_of_messages_is_limited_for_the_host) {
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

TEST_F(L3QcnTest, no_damaged_message_reaches_the_host) {
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
  for (size_t at = kPayload; at < right.size(); ++at) {  // as if the sender had meant it
    auto wrong = right;
    wrong[at] ^= 0x10;
    wrong[40] = wrong[41] = 0;  // no checksum
    send_to_tor_a(wrong);
  }
  for (const auto& bytes : heard(0)) EXPECT_EQ(parse_cnm_frame(bytes).outcome, CnmOutcome::kAccepted);
  for (size_t length = 15; length < right.size(); ++length)
    send_to_tor_a({right.begin(), right.begin() + static_cast<std::ptrdiff_t>(length)});
  EXPECT_EQ(heard(0).size(), 0U) << "cut";
  discard_from_tor_a();
}

TEST_F(L3QcnTest, what_is_for_a_host_elsewhere_goes_on) {
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

TEST_F(L3QcnTest, tags_from_beyond_the_domain_are_not_believed) {
  SwitchConfig a = tor_a();
  a.ports[0].keeps_cn_tags = false;
  tor_a_alone(a);
  send(0, frame(0));
  settle();
  EXPECT_EQ(events(tor_a_, CnmEvent::kFlowLearnt), 0U);
  EXPECT_EQ(discard_from_tor_a(), 1U) << "but routed, without it";
}

}  // namespace
}  // namespace roci
