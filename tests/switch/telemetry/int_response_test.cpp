// INT responses of a congested switch to the senders of subscribed packets.
#include <set>

#include "switch/cnp/rotating_bloom.hpp"
#include "switch/config_text.hpp"
#include "switch/qcn/cnm_bench.hpp"
#include "switch/switch_bench.hpp"
#include "wire/int/telemetry_edit.hpp"
#include "wire/roce/packet.hpp"
#include "wire/roce/packet_fields.hpp"
#include "wire/wire_test_support.hpp"

namespace roci {
namespace {

using test::ip;
using test::net;
using To = TelemetryConfig::Respond::To;
constexpr uint16_t kIntPort = 5201;
constexpr uint8_t kDscp = 26;

TEST(RotatingBloom, retains_keys_for_one_to_two_periods) {
  Rng rng(1);
  RotatingBloom bloom(100ns);
  for (int i = 0; i < 1000; ++i) {
    const uint64_t key = rng.next();
    const Nanos noted{i * 1000 + static_cast<int64_t>(rng.below(100))};
    EXPECT_FALSE(bloom.has(key, noted));
    bloom.note(key, noted);
    EXPECT_TRUE(bloom.has(key, noted));
    EXPECT_TRUE(bloom.has(key, noted + 100ns));
    EXPECT_FALSE(bloom.has(key, noted + 200ns));
  }
}

// The workers of a switch that polls late process frames of several ports with times that overlap.
TEST(RotatingBloom, earlier_times_do_not_remove_keys) {
  RotatingBloom bloom(20us);
  bloom.note(0x123456789abcdef0, 100us);
  EXPECT_TRUE(bloom.has(0x123456789abcdef0, 0us));
  EXPECT_TRUE(bloom.has(0x123456789abcdef0, 100us));
}

TEST(RotatingBloom, false_positive_rate_is_as_calculated) {
  Rng rng(2);
  RotatingBloom bloom(1s);
  for (int i = 0; i < 5000; ++i) bloom.note(rng.next(), 0ns);
  int wrong = 0;
  for (int i = 0; i < 100'000; ++i) wrong += bloom.has(rng.next(), 0ns);
  // 5,000 insertions set 1 - e^(-4 5000 / 65536) = 0.263 of the bits: false positive rate 0.0048. With 30 % set:
  // 0.0067.
  EXPECT_LT(wrong, 630);
  EXPECT_GT(wrong, 330);
}

class IntResponseTest : public SwitchTest {
 protected:
  static SwitchConfig responding(To to = To::kSender) {
    SwitchConfig config = ports(2);
    config.telemetry.enabled = true;
    config.telemetry.udp_port = kIntPort;
    config.telemetry.switch_id = 77;
    config.telemetry.respond = {.to = to, .above = Bytes{2500}, .spacing = 20us, .rate = 100'000, .dscp = {}};
    config.ports[1].rate = 1_Gbps;
    return config;
  }
  void begin(const SwitchConfig& config) {
    make(config);
    introduce({0, 1});
    wait(1ms);  // the line is idle
    link_begin_ = runner_.now();
  }
  static IpAddress address(size_t host) { return ip("10.0.0." + std::to_string(host + 1)); }

  // A packet from host 0 to host 1, 1,094 bytes with the extension block.
  static Packet data(uint32_t psn, bool lsn = false) {
    Packet packet = make_packet(Opcode::kRcWriteMiddle).to(Qpn{0x200}, Psn{psn});
    packet.between(host_mac(0), address(0), host_mac(1), address(1)).with_traffic_class(kDscp << 2 | 2);
    packet.with_payload(ByteVector(1024));
    ExtensionBlock block;
    block.source_qp = Qpn{0x100};
    if (lsn) block.lsn = Lsn{0x1'2345'6789};
    return packet.with_extensions(block).finish();
  }
  static ByteVector subscribed(const Packet& packet, uint16_t flags = int_domain_flag::kWantsResponse) {
    test::RoomyFrame roomy(encode_packet(packet));
    EXPECT_EQ(begin_int(roomy.front,
                        {.port = kIntPort,
                         .domain = 1,
                         .domain_instructions = int_domain_instruction::kCompactHop,
                         .domain_flags = flags,
                         .hops = 5},
                        4000),
              IntEdit::kDone);
    return roomy.bytes();
  }
  std::vector<Packet> responses(size_t host) {
    std::vector<Packet> out;
    for (const auto& bytes : heard(host)) {
      auto packet = decode_packet(bytes);
      if (!packet || packet->bth.opcode != Opcode::kCcIntResponse) continue;
      EXPECT_TRUE(parse_frame(bytes.data(), static_cast<uint32_t>(bytes.size()),
                              static_cast<uint32_t>(bytes.size()), OpcodeRange::kWithPrivate)
                      .kind == FrameKind::kRoce);
      Packet checked = *packet;
      EXPECT_EQ(checked.finish().icrc, packet->icrc);
      out.push_back(std::move(*packet));
    }
    return out;
  }
  uint64_t events(IntResponseEvent event) { return switch_->int_response_counts().of(event); }
  Nanos link_begin_{0};
};

TEST_F(IntResponseTest, sends_hop_values_to_the_sender_of_a_subscribed_packet) {
  begin(responding());
  const uint64_t before = switch_->counters(1).tx_bytes;
  const size_t bytes = subscribed(data(0)).size();
  for (uint32_t i = 0; i < 5; ++i) send(0, subscribed(data(1000 + i, i == 0)));
  settle();
  // The first frame leaves while the other four wait, which exceeds the threshold of 2,500 bytes.
  const auto got = responses(0);
  ASSERT_EQ(got.size(), 1U);
  const Packet& r = got[0];
  EXPECT_EQ(r.bth.destination_qp, Qpn{0x100});
  EXPECT_EQ(r.bth.psn, Psn{1000});
  EXPECT_EQ(r.source, address(1));
  EXPECT_EQ(r.destination, address(0));
  EXPECT_EQ(r.source_mac, switch_->mac());
  EXPECT_EQ(r.udp_source_port, data(0).udp_source_port);
  ASSERT_TRUE(r.int_report);
  EXPECT_EQ(r.int_report->flags, IntReport::kLsnKnown);
  EXPECT_EQ(r.int_report->lsn, Lsn{0x1'2345'6789});
  const auto sampled = encode_packet(data(1000, true));
  EXPECT_TRUE(std::equal(r.int_report->sampled.begin(), r.int_report->sampled.end(), sampled.begin() + 42));
  // Expected values: the port's state when the first frame was sent.
  const IntHopValues wanted = compact_hop({.switch_id = 77,
                                           .ingress_port = 0,
                                           .egress_port = 1,
                                           .queue = 0,
                                           .ingress_time = 0,
                                           .egress_time = static_cast<uint64_t>(link_begin_.count()),
                                           .tx_bytes = before,
                                           .queue_bytes = 4 * bytes,
                                           .rate = 1_Gbps});
  EXPECT_EQ(r.int_report->hop.switch_id, wanted.switch_id);
  EXPECT_EQ(r.int_report->hop, wanted);
  EXPECT_EQ(events(IntResponseEvent::kSent), 1U);
}

TEST_F(IntResponseTest, sends_no_response_without_subscription) {
  begin(responding());
  for (uint32_t i = 0; i < 5; ++i) send(0, subscribed(data(i), 0));
  for (uint32_t i = 0; i < 5; ++i) send(0, encode_packet(data(i)));
  wait(1ms);
  EXPECT_TRUE(responses(0).empty());
}

TEST_F(IntResponseTest, configured_dscp_subscribes_packets) {
  SwitchConfig config = responding();
  config.telemetry.respond.dscp.set(kDscp);
  begin(config);
  for (uint32_t i = 0; i < 5; ++i) send(0, encode_packet(data(i)));
  settle();
  EXPECT_EQ(responses(0).size(), 1U);
}

TEST_F(IntResponseTest, telemetry_source_subscribes_packets_when_configured) {
  SwitchConfig config = responding();
  config.telemetry.wants_response = true;
  config.ports[0].telemetry = TelemetryRole::kSource;
  begin(config);
  for (uint32_t i = 0; i < 5; ++i) send(0, encode_packet(data(i)));
  settle();
  EXPECT_EQ(responses(0).size(), 1U);
}

TEST_F(IntResponseTest, sends_no_response_below_the_queue_threshold) {
  begin(responding());
  for (uint32_t i = 0; i < 3; ++i) send(0, subscribed(data(i)));  // two wait: 2,180 bytes
  wait(1ms);
  EXPECT_TRUE(responses(0).empty());
}

TEST_F(IntResponseTest, responses_to_a_sender_are_one_to_two_spacings_apart) {
  begin(responding());
  std::vector<Nanos> at;
  for (uint32_t i = 0; i < 4; ++i) send(0, subscribed(data(i)));
  for (uint32_t i = 0; i < 400; ++i) {
    send(0, subscribed(data(4 + i)));
    for (int step = 0; step < 9; ++step) {
      wait(1us);
      if (!responses(0).empty()) at.push_back(runner_.now());
    }
  }
  ASSERT_GT(at.size(), 50U);
  for (size_t i = 1; i < at.size(); ++i) {
    EXPECT_GE(at[i] - at[i - 1], 20us - 1us) << i;
    EXPECT_LE(at[i] - at[i - 1], 40us + 10us) << i;
  }
  EXPECT_GT(events(IntResponseEvent::kSpaced), 100U);
}

TEST_F(IntResponseTest, sends_responses_to_the_receiver_when_configured) {
  begin(responding(To::kReceiver));
  for (uint32_t i = 0; i < 5; ++i) send(0, subscribed(data(i)));
  wait(1ms);
  const auto got = responses(1);
  ASSERT_EQ(got.size(), 1U);
  EXPECT_EQ(got[0].bth.destination_qp, Qpn{0x200});
  EXPECT_EQ(got[0].int_report->flags, IntReport::kToReceiver);
  EXPECT_EQ(got[0].source, address(0));
  EXPECT_EQ(got[0].destination, address(1));
  EXPECT_TRUE(responses(0).empty());
}

TEST_F(IntResponseTest, response_for_a_routed_packet_is_routed_to_the_sender) {
  SwitchConfig config = responding();
  config.interfaces = {{.name = "a", .vlan = 1, .addresses = {net("10.0.0.254/24")}},
                       {.name = "b", .vlan = 2, .addresses = {net("10.2.0.254/24")}}};
  config.neighbors = {{address(0), host_mac(0)}, {ip("10.2.0.2"), host_mac(1)}};
  config.ports[1].vlan = 2;
  make(config);
  introduce({0});
  wait(1ms);
  for (uint32_t i = 0; i < 5; ++i) {
    Packet packet = data(i);
    packet.destination_mac = switch_->mac();
    packet.destination = ip("10.2.0.2");
    send(0, subscribed(packet.finish()));
  }
  settle();
  const auto got = responses(0);
  ASSERT_EQ(got.size(), 1U);
  EXPECT_EQ(got[0].source, ip("10.2.0.2"));
  EXPECT_EQ(got[0].destination_mac, host_mac(0));
}

TEST_F(IntResponseTest, sends_no_response_to_an_unknown_sender) {
  begin(responding());
  for (uint32_t i = 0; i < 5; ++i) {
    Packet packet = data(i);
    packet.extensions.reset();
    packet.bth.reserved7 = 0;
    send(0, subscribed(packet.finish()));
  }
  settle();
  EXPECT_TRUE(responses(0).empty());
  EXPECT_GT(events(IntResponseEvent::kUnknownSender), 0U);
}

TEST(IntResponseConfig, reads_settings_and_rejects_invalid_values) {
  const std::string start = "ports: [{name: a}]\ntelemetry: {udp_port: 5201, switch_id: 1, respond: ";
  const auto config =
      test::read_switch_text(start + "{above: 10KB, spacing: 3us, rate: 7, to: receiver, dscp: [26]}}");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->telemetry.respond.above, Bytes{10'000});
  EXPECT_EQ(config->telemetry.respond.spacing, 3us);
  EXPECT_EQ(config->telemetry.respond.rate, 7U);
  EXPECT_EQ(config->telemetry.respond.to, To::kReceiver);
  EXPECT_TRUE(config->telemetry.respond.dscp.test(26) && config->telemetry.respond.dscp.count() == 1);
  EXPECT_TRUE(responds(config->telemetry));
  const auto error = [&](const std::string& section) {
    return test::switch_text_error(start + section + "}");
  };
  EXPECT_NE(error("{}").find("above"), std::string::npos);
  EXPECT_NE(error("{above: 1KB, spacing: 0us}").find("1 us to 1 s"), std::string::npos);
  EXPECT_NE(error("{above: 1KB, to: all}").find("sender, receiver"), std::string::npos);
}

}  // namespace
}  // namespace roci
