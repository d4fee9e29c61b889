// CNPs from a congested queue to the senders of its key flows.
#include <algorithm>

#include "switch/config_text.hpp"
#include "switch/qcn/cnm_bench.hpp"
#include "switch/switch_bench.hpp"
#include "wire/roce/packet.hpp"
#include "wire/roce/packet_fields.hpp"
#include "wire/roce/roce_cnp.hpp"

namespace roci {
namespace {

using test::ip;
using test::net;
constexpr uint8_t kCnpClass = 7;

class CnpTest : public SwitchTest {
 protected:
  static constexpr uint32_t kPayload = 1000;
  static ClassConfig cnp_class(CnpConfig::Choice choice = CnpConfig::Choice::kSampled) {
    ClassConfig c;
    c.notify = ClassConfig::Notify::kCnp;
    c.cnp = {.threshold = Bytes{2000}, .sample = Bytes{1000}, .key_flow = choice};
    return c;
  }
  // Hosts 0 and 1 send to host 2, whose line is slow.
  void make_congested(const SwitchConfig& given) {
    SwitchConfig config = given;
    config.ports[2].rate = 1_Mbps;
    make(config);
    introduce({0, 1, 2});
  }
  static SwitchConfig bridge(CnpConfig::Choice choice = CnpConfig::Choice::kSampled) {
    SwitchConfig config = ports(4);  // the last is a host that neither sends nor receives data
    config.ports[2].classes[kCnpClass] = cnp_class(choice);
    return config;
  }

  // A packet from a host to host 2's queue pair 0x200 + host. The sender's own queue pair is 0x100 + host; an
  // extension block contains it if `says` is set.
  Packet data(size_t host, uint32_t psn, bool says, bool ipv6 = false, Opcode opcode = Opcode::kRcSendOnly) {
    Packet packet = make_packet(opcode, ipv6).to(Qpn{0x200 + static_cast<uint32_t>(host)}, Psn{psn});
    packet.between(host_mac(host), address(host, ipv6), host_mac(2), address(2, ipv6));
    packet.with_traffic_class(kCnpClass << 5 | 2);
    packet.bth.pkey = PKey{0x8001};
    packet.with_payload(ByteVector(kPayload));
    if (says) {
      ExtensionBlock block;
      block.source_qp = Qpn{0x100 + static_cast<uint32_t>(host)};
      packet.with_extensions(block);
    }
    return packet.finish();
  }
  static IpAddress address(size_t host, bool ipv6 = false) {
    return ip((ipv6 ? "fd00::" : "10.0.0.") + std::to_string(host + 1));
  }
  void put(size_t host, const Packet& packet) { send(host, encode_packet(packet)); }
  // The CNPs that a host has received.
  std::vector<Packet> cnps(size_t host) {
    std::vector<Packet> out;
    for (const auto& bytes : heard(host)) {
      auto packet = decode_packet(bytes);
      if (packet && packet->bth.opcode == Opcode::kCnp) {
        EXPECT_TRUE(icrc_is_right(bytes));
        out.push_back(*packet);
      }
    }
    return out;
  }
  uint64_t events(CnpEvent event) { return switch_->cnp_counts().of(event); }
};

class CnpIpVersionTest : public CnpTest, public testing::WithParamInterface<bool> {};

TEST_P(CnpIpVersionTest, cnp_has_the_contents_of_a_receivers_cnp) {
  const bool ipv6 = GetParam();
  make_congested(bridge());
  for (uint32_t i = 0; i < 5; ++i) put(0, data(0, i, true, ipv6));
  settle();
  const auto got = cnps(0);
  ASSERT_EQ(got.size(), 1U);
  Packet wanted = make_packet(Opcode::kCnp, ipv6).to(Qpn{0x100}, Psn{0});
  wanted.between(switch_->mac(), address(2, ipv6), host_mac(0), address(0, ipv6))
      .with_traffic_class(kFeedbackTrafficClass);
  wanted.bth.pkey = PKey{0x8001};
  wanted.udp_source_port = flow_udp_source_port(0, Qpn{0x200}, Qpn{0x100});
  wanted.finish();
  EXPECT_EQ(got[0], wanted) << testing::PrintToString(packet_differences(got[0], wanted));
  EXPECT_TRUE(cnps(1).empty());
  EXPECT_EQ(events(CnpEvent::kSent), 1U);
  EXPECT_EQ(switch_->sender_counts().of(SenderEvent::kFromPacket), 1U);
}

INSTANTIATE_TEST_SUITE_P(, CnpIpVersionTest, testing::Bool(),
                         [](const auto& value) { return value.param ? "ipv6" : "ipv4"; });

TEST_F(CnpTest, sends_no_cnp_below_the_threshold) {
  make_congested(bridge());
  // The first frame is sent; the second is all that waits: 1,070 bytes.
  put(0, data(0, 0, true));
  settle();
  put(0, data(0, 1, true));
  settle();
  EXPECT_TRUE(cnps(0).empty());
  put(0, data(0, 2, true));
  settle();
  EXPECT_EQ(cnps(0).size(), 1U);
}

TEST_F(CnpTest, cnp_has_the_vlan_of_the_flow_and_a_priority) {
  SwitchConfig config = bridge();
  make_congested(config);
  introduce({0, 2}, 0x0000 | 9);
  for (uint32_t i = 0; i < 4; ++i) {
    Packet packet = data(0, i, true);
    packet.with_vlan(7 << 13 | 9).finish();
    put(0, packet);
  }
  settle();
  const auto got = cnps(0);
  ASSERT_EQ(got.size(), 1U);
  ASSERT_EQ(got[0].vlan_tags.size(), 1U);
  EXPECT_EQ(got[0].vlan_tags[0].tci, 6 << 13 | 9);
}

TEST_F(CnpTest, sends_at_most_one_cnp_per_flow_and_spacing_interval) {
  SwitchConfig config = bridge();
  config.cnp.spacing = 50us;
  make_congested(config);
  const Nanos begin = runner_.now();
  uint64_t told = 0;
  for (uint32_t i = 0; i < 200; ++i) {  // one frame per microsecond
    put(0, data(0, i, true));
    wait(1us);
    const auto got = cnps(0);
    told += got.size();
    EXPECT_LE(told, static_cast<uint64_t>((runner_.now() - begin) / 50us + 1));
  }
  EXPECT_EQ(told, 4U);
  EXPECT_GT(events(CnpEvent::kSpaced), 100U);
}

TEST_F(CnpTest, cnp_rate_of_a_port_is_limited) {
  SwitchConfig config = bridge();
  config.cnp.rate = 1000;
  config.cnp.spacing = Nanos{0};
  make_congested(config);
  for (uint32_t i = 0; i < 100; ++i) {
    put(0, data(0, i, true));
    settle();
  }
  EXPECT_EQ(cnps(0).size(), size_t{EventLimit::kAtOnce});
  EXPECT_GT(events(CnpEvent::kLimited), 30U);
}

TEST_F(CnpTest, unknown_sender_receives_cnps_after_its_acks_are_observed) {
  make_congested(bridge());
  for (uint32_t psn = 0; psn < 40; ++psn) {
    put(0, data(0, psn, false));
    wait(1us);
    Packet ack = make_packet(Opcode::kRcAcknowledge).to(Qpn{0x100}, Psn{psn});
    ack.between(host_mac(2), address(2), host_mac(0), address(0)).finish();
    put(2, ack);
    settle();
  }
  const auto got = cnps(0);
  ASSERT_EQ(got.size(), 1U);
  EXPECT_EQ(got[0].bth.destination_qp, Qpn{0x100});
  EXPECT_GT(events(CnpEvent::kUnknownSender), 0U);
  EXPECT_EQ(switch_->sender_counts().of(SenderEvent::kFromAcks), 1U);
}

TEST_F(CnpTest, cnp_for_datagrams_is_sent_to_the_source_qp_of_the_deth) {
  make_congested(bridge());
  for (uint32_t i = 0; i < 4; ++i) {
    Packet packet = data(0, i, false, false, Opcode::kUdSendOnly);
    packet.deth->source_qp = Qpn{0x77};
    put(0, packet.finish());
  }
  settle();
  const auto got = cnps(0);
  ASSERT_EQ(got.size(), 1U);
  EXPECT_EQ(got[0].bth.destination_qp, Qpn{0x77});
}

TEST_F(CnpTest, acks_mads_and_multicast_cause_no_cnp) {
  make_congested(bridge());
  for (uint32_t i = 0; i < 10; ++i) {
    Packet ack = make_packet(Opcode::kRcAcknowledge).to(Qpn{0x200}, Psn{i});
    ack.between(host_mac(0), address(0), host_mac(2), address(2)).with_traffic_class(kCnpClass << 5 | 2);
    ack.trailing = ByteVector(1000);
    put(0, ack.finish());
    Packet mad = data(0, i, false, false, Opcode::kUdSendOnly);
    mad.bth.destination_qp = Qpn{1};
    put(0, mad.finish());
    put(0, [&] {
      Packet group = data(0, i, true);
      group.destination = ip("224.0.0.9");
      return group.finish();
    }());
  }
  settle();
  EXPECT_TRUE(cnps(0).empty());
  EXPECT_GT(events(CnpEvent::kNoFlow), 20U);
}

// Host 0 sends nine of ten frames.
TEST_F(CnpTest, notifies_the_heaviest_flow_first_and_then_the_next) {
  make_congested(bridge(CnpConfig::Choice::kHeaviest));
  std::vector<size_t> order;
  for (uint32_t i = 0; i < 30; ++i) {
    put(i % 10 == 0 ? 1 : 0, data(i % 10 == 0 ? 1 : 0, i, true));
    settle();
    for (const size_t host : {0U, 1U}) {
      for (size_t n = cnps(host).size(); n > 0; --n) order.push_back(host);
    }
  }
  EXPECT_EQ(order, (std::vector<size_t>{0, 1}));
}

TEST_F(CnpTest, cnp_for_a_routed_flow_is_routed_to_the_sender) {
  SwitchConfig config = bridge();
  config.interfaces = {{.name = "a", .vlan = 1, .addresses = {net("10.0.0.254/24")}},
                       {.name = "b", .vlan = 2, .addresses = {net("10.2.0.254/24")}}};
  config.neighbors = {{ip("10.0.0.1"), host_mac(0)}, {ip("10.2.0.3"), host_mac(2)}};
  config.ports[2].vlan = 2;
  config.ports[2].rate = 1_Mbps;
  make(config);
  introduce({0});
  for (uint32_t i = 0; i < 4; ++i) {
    Packet packet = data(0, i, true);
    packet.destination_mac = switch_->mac();
    packet.destination = ip("10.2.0.3");
    put(0, packet.finish());
  }
  settle();
  const auto got = cnps(0);
  ASSERT_EQ(got.size(), 1U);
  EXPECT_EQ(got[0].source, ip("10.2.0.3"));
  EXPECT_EQ(got[0].destination, ip("10.0.0.1"));
  EXPECT_EQ(got[0].destination_mac, host_mac(0));
  EXPECT_EQ(got[0].source_mac, switch_->mac());
}

// A CNP from the receiver to host 0.
class SuppressionTest : public CnpTest {
 protected:
  void receiver_says(uint32_t qpn = 0x100) { send_cnp(2, qpn); }
  // A CNP with the receiver's IP address, from the port of a host.
  void send_cnp(size_t host, uint32_t qpn = 0x100) {
    Packet cnp = make_packet(Opcode::kCnp).to(Qpn{qpn}, Psn{0});
    cnp.between(host_mac(host), address(2), host_mac(0), address(0))
        .with_traffic_class(kFeedbackTrafficClass);
    put(host, cnp.finish());
    settle();
  }
};

// Host 3 sends CNPs with the address of the receiver, which the sender may reject, for example for their partition key.
// Expects that neither the CNPs of the receiver nor those of the switch are suppressed by them.
TEST_F(SuppressionTest, forged_cnp_of_another_port_suppresses_only_cnps_of_that_port) {
  make_congested(bridge());
  send_cnp(3);
  ASSERT_EQ(cnps(0).size(), 1U);
  for (int i = 0; i < 10; ++i) send_cnp(3);
  EXPECT_TRUE(cnps(0).empty());
  EXPECT_EQ(dropped(3, DropReason::kCovered), 10U);
  receiver_says();
  EXPECT_EQ(cnps(0).size(), 1U);
  EXPECT_EQ(dropped(2, DropReason::kCovered), 0U);
  wait(60us);
  send_cnp(3);
  ASSERT_EQ(cnps(0).size(), 1U);
  for (uint32_t i = 0; i < 4; ++i) put(0, data(0, i, true));
  settle();
  EXPECT_EQ(cnps(0).size(), 1U) << "of the switch";
  EXPECT_EQ(events(CnpEvent::kSent), 1U);
}

// CNPs for other queue pairs fill the table of other devices' CNPs.
TEST_F(SuppressionTest, flood_of_forged_cnps_does_not_stop_the_cnps_of_the_switch) {
  SwitchConfig config = bridge();
  config.senders.flows = 8;
  config.cnp.spacing = 1s;
  make_congested(config);
  for (uint32_t i = 0; i < 100; ++i) send_cnp(3, 0x5000 + i);
  cnps(0);
  for (uint32_t i = 0; i < 4; ++i) put(0, data(0, i, true));
  settle();
  EXPECT_EQ(cnps(0).size(), 1U);
  EXPECT_EQ(events(CnpEvent::kFlowsFull), 0U);
}

TEST_F(SuppressionTest, drops_receiver_cnp_for_a_recently_notified_flow) {
  make_congested(bridge());
  for (uint32_t i = 0; i < 4; ++i) put(0, data(0, i, true));
  settle();
  ASSERT_EQ(cnps(0).size(), 1U);
  receiver_says();
  EXPECT_TRUE(cnps(0).empty());
  EXPECT_EQ(dropped(2, DropReason::kCovered), 1U);
  EXPECT_EQ(events(CnpEvent::kSuppressed), 1U);
  receiver_says(0x101);
  EXPECT_EQ(cnps(0).size(), 1U) << "another queue pair's goes on";
  wait(50us);
  receiver_says();
  EXPECT_EQ(cnps(0).size(), 1U) << "and later this one's";
}

TEST_F(SuppressionTest, receiver_cnp_counts_toward_the_spacing) {
  make_congested(bridge());
  receiver_says();
  ASSERT_EQ(cnps(0).size(), 1U);
  for (uint32_t i = 0; i < 4; ++i) put(0, data(0, i, true));
  settle();
  EXPECT_TRUE(cnps(0).empty());
  EXPECT_GT(events(CnpEvent::kSpaced), 0U);
}

TEST_F(SuppressionTest, suppression_can_be_disabled) {
  SwitchConfig config = bridge();
  config.cnp.suppress = false;
  make_congested(config);
  for (uint32_t i = 0; i < 4; ++i) put(0, data(0, i, true));
  settle();
  receiver_says();
  EXPECT_EQ(cnps(0).size(), 2U);
}

TEST_F(CnpTest, sends_cnps_only_for_flows_that_fit_the_table) {
  SwitchConfig config = bridge();
  config.senders.flows = 4;
  config.cnp.spacing = 1s;
  make_congested(config);
  for (uint32_t i = 0; i < 20; ++i) {
    Packet packet = data(0, 0, true);
    packet.bth.destination_qp = Qpn{0x1000 + i};
    packet.extensions->source_qp = Qpn{0x2000 + i};
    packet.finish();
    put(0, packet);
    settle();
  }
  EXPECT_EQ(cnps(0).size(), 4U);
  EXPECT_GT(events(CnpEvent::kFlowsFull), 10U);
}

constexpr const char* kConfig = R"(
ports:
  - name: a
    rate: 8Gbps
    classes: [{class: 7, notify: cnp, cnp: {threshold: 10us, sample: 32KB, key_flow: heaviest}}]
  - name: b
senders: {flows: 100, ageing: 1s}
cnp: {spacing: 4us, rate: 5000, suppress: false}
)";

TEST(CnpConfigText, reads_cnp_settings) {
  const auto config = test::read_switch_text(kConfig);
  ASSERT_TRUE(config) << config.error().message;
  const ClassConfig& c = config->ports[0].classes[7];
  EXPECT_EQ(c.notify, ClassConfig::Notify::kCnp);
  EXPECT_EQ(c.cnp.threshold, Bytes{10'000});
  EXPECT_EQ(c.cnp.sample, Bytes{32'000});
  EXPECT_EQ(c.cnp.key_flow, CnpConfig::Choice::kHeaviest);
  EXPECT_EQ(config->senders.flows, 100U);
  EXPECT_EQ(config->senders.ageing, 1s);
  EXPECT_EQ(config->cnp.spacing, 4us);
  EXPECT_EQ(config->cnp.rate, 5000U);
  EXPECT_FALSE(config->cnp.suppress);
  EXPECT_TRUE(sends_cnps(*config));
}

TEST(CnpConfigText, invalid_settings_are_rejected_with_the_reason) {
  const std::string start = "ports: [{name: a}]\n";
  const auto error = [&](const std::string& more) { return test::switch_text_error(start + more); };
  EXPECT_NE(error("cnp: {spacing: 2s}").find("spacing must be 0 to 1 s"), std::string::npos);
  EXPECT_NE(error("senders: {flows: 0}").find("flows"), std::string::npos);
  EXPECT_NE(error("cnp: {often: true}").find("often"), std::string::npos);
  EXPECT_NE(error("classes: [{class: 7, notify: cnp, cnp: {threshold: 10us}}]").find("requires a rate"),
            std::string::npos);
  EXPECT_NE(error("classes: [{class: 7, notify: cnp, cnp: {key_flow: last}}]").find("sampled, heaviest"),
            std::string::npos);
  EXPECT_NE(error("classes: [{class: 7, notify: cnp, cnp: {sample: 100B}}]").find("1 KB to 1 GiB"),
            std::string::npos);
}

}  // namespace
}  // namespace roci
