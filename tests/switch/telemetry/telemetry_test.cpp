// In-band telemetry through a chain of switches, in virtual time, compared with values that the test computes.
#include "support/ports/line_rate_source.hpp"
#include "switch/switch_bench.hpp"

namespace roci {
namespace {

constexpr uint16_t kPort = 5201;
constexpr uint16_t kDomain = 7;
constexpr BitsPerSec kRate = 10_Gbps;

// host a - s0 - s1 - ... - host b. Port 0 of each switch is toward a, port 1 toward b. By default both hosts are at
// edge ports.
class TelemetryTest : public SwitchTest {
 protected:
  void make_row(size_t count, TelemetryConfig telemetry, TelemetryRole first = TelemetryRole::kEdge,
                TelemetryRole last = TelemetryRole::kEdge, uint16_t mtu = 4300) {
    for (size_t i = 0; i <= count; ++i) {
      SimLinkConfig link{.name = "link" + std::to_string(i), .seed = i + 1, .mtu = mtu};
      link.a_to_b.delay = link.b_to_a.delay = 1us;
      links_.push_back(std::make_unique<SimLink>(link, pool_));
      runner_.add(*links_.back());
    }
    for (size_t i = 0; i < count; ++i) {
      SwitchConfig config = ports(2);
      config.name = "s" + std::to_string(i);
      for (SwitchPortConfig& port : config.ports) port.rate = kRate;
      config.ports[0].telemetry = i == 0 ? first : TelemetryRole::kTransit;
      config.ports[1].telemetry = i + 1 == count ? last : TelemetryRole::kTransit;
      telemetry.switch_id = static_cast<uint32_t>(100 + i);
      config.telemetry = telemetry;
      auto made = Switch::create(config, {&links_[i]->b(), &links_[i + 1]->a()}, pool_);
      ASSERT_TRUE(made) << made.error().message;
      row_.push_back(std::move(*made));
      runner_.add(*row_.back());
    }
    // All switches learn both hosts.
    send(host_a(), frame(1, 0, 64, 0));
    wait(100us);
    send(host_b(), frame(0, 1, 64, 0));
    wait(100us);
    heard_at(host_a());
    heard_at(host_b());
  }
  void TearDown() override {
    row_.clear();
    SwitchTest::TearDown();
  }
  Port& host_a() { return links_.front()->a(); }
  Port& host_b() { return links_.back()->b(); }
  void send(Port& from, const std::vector<uint8_t>& bytes) {
    rte_mbuf* mbuf = test::to_mbuf(*pool_, bytes);
    ASSERT_EQ(from.tx_burst({&mbuf, 1}, runner_.now()), 1);
  }
  std::vector<std::vector<uint8_t>> heard_at(Port& port) {
    std::vector<std::vector<uint8_t>> out;
    rte_mbuf* mbuf = nullptr;
    while (port.rx_burst({&mbuf, 1}, runner_.now()) == 1) {
      out.push_back(test::bytes_of(mbuf));
      rte_pktmbuf_free(mbuf);
    }
    return out;
  }
  static std::vector<uint8_t> frame(size_t to, size_t from, uint32_t payload, uint32_t number,
                                    uint8_t tos = 2) {
    return test::roce_bytes({.destination = host_mac(to),
                             .source = host_mac(from),
                             .traffic_class = tos,
                             .payload = payload,
                             .number = number});
  }
  static IntView telemetry_of(const std::vector<uint8_t>& bytes) {
    return parse_int(bytes, static_cast<uint32_t>(bytes.size()), kPort);
  }
  static TelemetryConfig compact() {
    TelemetryConfig config;
    config.enabled = true;
    config.udp_port = kPort;
    config.domain = kDomain;
    return config;
  }
  std::vector<std::unique_ptr<Switch>> row_;
};

TEST_F(TelemetryTest, five_hops_report_exact_port_state) {
  TelemetryConfig config = compact();
  config.full = true;
  make_row(5, config, TelemetryRole::kSource, TelemetryRole::kTransit, 4400);
  // Ten frames of the largest path MTU at once: the first switch queues them, the others receive them one by one.
  constexpr uint32_t kPayload = 4096;
  constexpr uint32_t kFrames = 10;
  const uint64_t bare = kPayload + 58;
  std::array<uint64_t, 5> sent{};
  for (size_t s = 0; s < 5; ++s) sent[s] = row_[s]->counters(1).tx_bytes;
  const Nanos begin = runner_.now();
  for (uint32_t i = 0; i < kFrames; ++i) send(host_a(), frame(1, 0, kPayload, i));
  wait(1ms);
  const auto got = heard_at(host_b());
  ASSERT_EQ(got.size(), kFrames);
  // Expected values: the line is idle from free_at() on, and the queue is a FIFO.
  std::array<LineClock, 5> line;
  line.fill(LineClock{kRate});
  for (uint32_t i = 0; i < kFrames; ++i) {
    const IntView view = telemetry_of(got[i]);
    ASSERT_TRUE(view.accepted()) << int_outcome_name(view.outcome);
    ASSERT_EQ(view.hop_count, 5U);
    EXPECT_FALSE(view.header().has(IntMdHeader::kHopsExceeded));
    EXPECT_FALSE(view.header().has(IntMdHeader::kMtuExceeded));
    Nanos arrival = begin + 1us;  // arrival at the first switch
    for (uint32_t s = 0; s < 5; ++s) {
      const FullHop* hop = view.full(4 - s, kDomain);  // the most recent hop first
      ASSERT_NE(hop, nullptr);
      const uint64_t here = bare + kIntHeaderBytes + (s + 1) * sizeof(FullHop);
      const Nanos start = std::max(arrival, line[s].free_at());
      line[s].occupy(start, Bytes{here + 24});
      EXPECT_EQ(hop->switch_id.get(), 100 + s);
      EXPECT_EQ(hop->ingress_port.get(), 0);
      EXPECT_EQ(hop->egress_port.get(), 1);
      EXPECT_EQ(hop->rate_mbps.get(), 10'000U);
      EXPECT_EQ(Nanos{static_cast<int64_t>(hop->time.get())}, start) << "frame " << i << " at switch " << s;
      EXPECT_EQ(hop->tx_bytes.get(), sent[s]) << "frame " << i << " at switch " << s;
      EXPECT_EQ(hop->queue_bytes.get(), s == 0 ? (kFrames - 1 - i) * bare : 0U) << "frame " << i;
      sent[s] += here;
      // Links have no rate, so a frame reaches the next switch one delay after its first bit was sent.
      arrival = start + 1us;
    }
  }
}

TEST_F(TelemetryTest, sink_restores_the_original_packet) {
  make_row(3, compact());
  const auto packet = frame(1, 0, 1024, 77);
  send(host_a(), packet);
  wait(100us);
  const auto got = heard_at(host_b());
  ASSERT_EQ(got.size(), 1U);
  EXPECT_EQ(got[0], packet);
  EXPECT_TRUE(icrc_is_right(got[0]));
  EXPECT_EQ(row_[0]->counters(1).telemetry_inserted, 2U) << "this one and the one that made the hosts known";
  EXPECT_EQ(row_[1]->counters(1).telemetry_hops, 2U);
  EXPECT_EQ(row_[2]->counters(1).telemetry_stripped, 2U);
}

TEST_F(TelemetryTest, sink_restores_the_original_ipv6_packet) {
  make_row(2, compact());
  const auto packet = test::roce_bytes({.destination = host_mac(1),
                                        .source = host_mac(0),
                                        .from = *IpAddress::parse("fd00::1"),
                                        .to = *IpAddress::parse("fd00::2"),
                                        .payload = 1000});
  send(host_a(), packet);
  wait(100us);
  const auto got = heard_at(host_b());
  ASSERT_EQ(got.size(), 1U);
  EXPECT_EQ(got[0], packet);
}

TEST_F(TelemetryTest, hop_beyond_the_mtu_is_omitted_and_flagged) {
  // A frame of 4154 bytes has an IP packet of 4140 bytes. The limit of 4180 leaves space for the header of 16 bytes
  // and one hop of 16 bytes, not for two.
  make_row(4, compact(), TelemetryRole::kSource, TelemetryRole::kTransit, 4180);
  send(host_a(), frame(1, 0, 4096, 1));
  wait(100us);
  const auto got = heard_at(host_b());
  ASSERT_EQ(got.size(), 1U);
  const IntView view = telemetry_of(got[0]);
  ASSERT_TRUE(view.accepted());
  EXPECT_EQ(view.hop_count, 1U);
  EXPECT_TRUE(view.header().has(IntMdHeader::kMtuExceeded));
}

TEST_F(TelemetryTest, hop_beyond_the_hop_limit_is_omitted_and_flagged) {
  TelemetryConfig config = compact();
  config.hops = 2;
  make_row(4, config, TelemetryRole::kSource, TelemetryRole::kTransit);
  send(host_a(), frame(1, 0, 64, 1));
  wait(100us);
  const auto got = heard_at(host_b());
  ASSERT_EQ(got.size(), 1U);
  const IntView view = telemetry_of(got[0]);
  ASSERT_TRUE(view.accepted());
  EXPECT_EQ(view.hop_count, 2U);
  EXPECT_TRUE(view.header().has(IntMdHeader::kHopsExceeded));
  EXPECT_EQ(view.hop(1, kDomain)->switch_id, 100U) << "the first two are there";
}

TEST_F(TelemetryTest, switch_without_telemetry_forwards_int_packets_unchanged) {
  make_row(1, {});
  const auto packet = frame(1, 0, 256, 1);
  rte_mbuf* mbuf = test::to_mbuf(*pool_, packet);
  FrameFront front = FrameFront::of(*mbuf);
  ASSERT_EQ(begin_int(front, {.port = kPort, .domain = kDomain}, 4200), IntEdit::kDone);
  front.store(*mbuf);
  const auto with = test::bytes_of(mbuf);
  rte_pktmbuf_free(mbuf);
  send(host_a(), with);
  wait(10us);
  const auto got = heard_at(host_b());
  ASSERT_EQ(got.size(), 1U);
  EXPECT_EQ(got[0], with);
}

TEST_F(TelemetryTest, only_subscribed_dscps_carry_telemetry) {
  TelemetryConfig config = compact();
  config.dscp.reset();
  config.dscp.set(26);
  make_row(1, config, TelemetryRole::kSource, TelemetryRole::kTransit);
  for (const uint8_t tos : std::initializer_list<uint8_t>{26 << 2, 24 << 2, 0}) {
    send(host_a(), frame(1, 0, 64, 1, tos));
    wait(10us);
    const auto got = heard_at(host_b());
    ASSERT_EQ(got.size(), 1U);
    EXPECT_EQ(telemetry_of(got[0]).accepted(), tos == 26 << 2);
  }
}

TEST_F(TelemetryTest, adds_telemetry_once_per_interval_to_a_flow) {
  TelemetryConfig config = compact();
  config.when = TelemetryConfig::When::kInterval;
  config.interval = 50us;
  make_row(1, config, TelemetryRole::kSource, TelemetryRole::kTransit);
  size_t with = 0, all = 0;
  for (int i = 0; i < 100; ++i) {
    send(host_a(), frame(1, 0, 64, 1));
    wait(5us);
    for (const auto& bytes : heard_at(host_b())) {
      with += telemetry_of(bytes).accepted();
      ++all;
    }
  }
  EXPECT_GE(all, 99U);
  EXPECT_NEAR(static_cast<double>(with), 10, 1);
}

TEST_F(TelemetryTest, adds_telemetry_only_above_the_congestion_threshold) {
  TelemetryConfig config = compact();
  config.when = TelemetryConfig::When::kCongestion;
  config.congestion = Bytes{500};
  make_row(1, config, TelemetryRole::kSource, TelemetryRole::kTransit);
  for (int i = 0; i < 10; ++i) send(host_a(), frame(1, 0, 64, 1));  // 122 bytes each
  wait(1ms);
  const auto got = heard_at(host_b());
  ASSERT_EQ(got.size(), 10U);
  for (size_t i = 0; i < 10; ++i) EXPECT_EQ(telemetry_of(got[i]).accepted(), (9 - i) * 122 > 500) << i;
}

TEST_F(TelemetryTest, adds_no_telemetry_between_two_edge_ports) {
  make_row(1, compact());
  const auto packet = frame(1, 0, 64, 5);
  send(host_a(), packet);
  wait(10us);
  EXPECT_EQ(heard_at(host_b()).at(0), packet);
  EXPECT_EQ(row_[0]->counters(1).telemetry_inserted, 0U);
}

TEST_F(TelemetryTest, malformed_telemetry_is_forwarded_unchanged_and_counted) {
  make_row(2, compact(), TelemetryRole::kTransit, TelemetryRole::kTransit);
  auto packet = frame(1, 0, 256, 1);
  rte_mbuf* mbuf = test::to_mbuf(*pool_, packet);
  FrameFront front = FrameFront::of(*mbuf);
  ASSERT_EQ(begin_int(front, {.port = kPort, .domain = kDomain}, 4200), IntEdit::kDone);
  front.store(*mbuf);
  auto broken = test::bytes_of(mbuf);
  rte_pktmbuf_free(mbuf);
  broken[14 + 20 + 8 + 1] = 255;  // length field of the shim header
  send(host_a(), broken);
  wait(10us);
  EXPECT_EQ(heard_at(host_b()).at(0), broken);
  EXPECT_EQ(row_[0]->counters(1).telemetry_malformed, 1U);
}

}  // namespace
}  // namespace roci
