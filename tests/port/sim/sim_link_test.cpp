#include "port/sim/sim_link.hpp"
#include "port/dpdk/eal.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "base/time/virtual_runner.hpp"
#include "support/ports/frames.hpp"

namespace roci {
namespace {

using test::FrameSpec;

// A received frame.
struct TimedFrame {
  Nanos at{0};
  std::vector<uint8_t> bytes;
  friend bool operator==(const TimedFrame&, const TimedFrame&) = default;
};

class SimLinkTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(start_eal());
    auto pool = MbufPool::create("sim_link", 4096, 4400);
    ASSERT_TRUE(pool) << pool.error().message;
    pool_ = *pool;
  }
  void TearDown() override { EXPECT_EQ(pool_->in_use(), 0U) << "leaked mbufs"; }

  rte_mbuf* frame(uint32_t number, uint32_t payload = 64) {
    FrameSpec spec;
    spec.number = number;
    spec.payload = payload;
    return test::roce_mbuf(*pool_, spec);
  }
  static bool send(Port& port, rte_mbuf* m, Nanos now) { return port.tx_burst({&m, 1}, now) == 1; }

  // Receives all frames in flight, each at its time of arrival.
  static std::vector<TimedFrame> drain(Port& port) {
    std::vector<TimedFrame> seen;
    for (Nanos at = port.next_arrival(); at != kNever; at = port.next_arrival()) {
      rte_mbuf* m = nullptr;
      EXPECT_EQ(port.rx_burst({&m, 1}, at - 1ns), 0U) << "early";
      EXPECT_EQ(port.rx_burst({&m, 1}, at), 1U);
      seen.push_back({at, test::bytes_of(m)});
      rte_pktmbuf_free(m);
    }
    return seen;
  }
  static uint32_t number(const TimedFrame& s) {
    const auto length = static_cast<uint32_t>(s.bytes.size());
    return parse_frame(s.bytes.data(), length, length).psn().value();
  }

  std::shared_ptr<MbufPool> pool_;
};

TEST_F(SimLinkTest, frame_arrives_after_serialization_time_and_delay) {
  SimLinkConfig config;
  config.a_to_b = {.rate = 10_Gbps, .delay = 1us};
  SimLink link{config, pool_};
  rte_mbuf* m = frame(0, 64);  // 14 + 20 + 8 + 12 + 64 + 4 = 122 bytes, 146 on the line: 116.8 ns
  ASSERT_EQ(m->pkt_len, 122U);
  EXPECT_EQ(link.b().next_arrival(), kNever);
  ASSERT_TRUE(send(link.a(), m, 500ns));
  EXPECT_EQ(link.b().next_arrival(), 500ns + 117ns + 1us);
  EXPECT_EQ(link.a().next_arrival(), kNever);
  drain(link.b());
}

TEST_F(SimLinkTest, back_to_back_frames_arrive_at_line_rate_to_the_nanosecond) {
  SimLinkConfig config;
  config.a_to_b = {.rate = 10_Gbps, .delay = 7ns};
  SimLink link{config, pool_};
  for (uint32_t i = 0; i < 1000; ++i) ASSERT_TRUE(send(link.a(), frame(i), 0ns));
  const auto seen = drain(link.b());
  ASSERT_EQ(seen.size(), 1000U);
  for (uint32_t i = 0; i < 1000; ++i) {
    EXPECT_EQ(number(seen[i]), i);
    const int64_t tenths = (i + 1) * 1168;  // 116.8 ns each
    EXPECT_EQ(seen[i].at, Nanos{(tenths + 9) / 10 + 7});
  }
}

TEST_F(SimLinkTest, link_without_rate_and_delay_delivers_at_once_in_order) {
  SimLink link{SimLinkConfig{}, pool_};
  for (uint32_t i = 0; i < 100; ++i) ASSERT_TRUE(send(link.b(), frame(i, 1024), 3ns));
  const auto seen = drain(link.a());
  ASSERT_EQ(seen.size(), 100U);
  for (uint32_t i = 0; i < 100; ++i) {
    EXPECT_EQ(number(seen[i]), i);
    EXPECT_EQ(seen[i].at, 3ns);
  }
}

TEST_F(SimLinkTest, full_transmit_queue_rejects_frames_until_a_frame_has_left) {
  SimLinkConfig config;
  config.a_to_b = {.rate = 1_Gbps, .delay = 0ns, .queue = Bytes{3 * 122}};
  SimLink link{config, pool_};
  std::vector<rte_mbuf*> frames;
  for (uint32_t i = 0; i < 5; ++i) frames.push_back(frame(i));
  EXPECT_EQ(link.a().tx_burst(frames, 0ns), 3U);
  EXPECT_EQ(link.a().stats().tx_refused, 2U);
  EXPECT_EQ(link.stats(SimLink::kAToB).peak_queue, 366U);
  // 146 bytes at 1 Gb/s take 1168 ns.
  EXPECT_EQ(link.next_deadline(), 1168ns);
  EXPECT_EQ(link.a().tx_burst(std::span{frames}.subspan(3), 1167ns), 0U);
  EXPECT_FALSE(link.poll(1167ns));
  EXPECT_TRUE(link.poll(1168ns));
  EXPECT_EQ(link.next_deadline(), kNever) << "nobody waits any more";
  EXPECT_EQ(link.a().tx_burst(std::span{frames}.subspan(3), 1168ns), 1U);
  EXPECT_EQ(link.a().tx_burst(std::span{frames}.subspan(4), 2336ns), 1U);
  EXPECT_EQ(drain(link.b()).size(), 5U);
}

TEST_F(SimLinkTest, frame_larger_than_the_queue_is_accepted_when_the_queue_is_empty) {
  SimLinkConfig config;
  config.a_to_b = {.rate = 1_Gbps, .queue = Bytes{10}};
  SimLink link{config, pool_};
  EXPECT_TRUE(send(link.a(), frame(0), 0ns));
  rte_mbuf* second = frame(1);
  EXPECT_FALSE(send(link.a(), second, 0ns));
  EXPECT_TRUE(send(link.a(), second, 1168ns));
}

TEST_F(SimLinkTest, frame_longer_than_the_mtu_is_dropped_and_counted) {
  SimLinkConfig config;
  config.mtu = 1500;
  SimLink link{config, pool_};
  EXPECT_TRUE(send(link.a(), frame(0, 1456), 0ns));  // an IP packet of 1500 bytes
  EXPECT_EQ(link.a().stats().tx_dropped, 0U);
  EXPECT_TRUE(send(link.a(), frame(0, 1460), 0ns));
  EXPECT_EQ(link.a().stats().tx_dropped, 1U);
  EXPECT_EQ(drain(link.b()).size(), 1U);
}

TEST_F(SimLinkTest, up_to_two_tags_do_not_count_toward_the_mtu) {
  SimLinkConfig config;
  config.mtu = 1500;
  SimLink link{config, pool_};
  const auto tagged = [this](std::initializer_list<uint16_t> types, uint32_t payload) {
    rte_mbuf* m = frame(0, payload);
    for (const uint16_t type : types) {
      auto* to = reinterpret_cast<uint8_t*>(rte_pktmbuf_prepend(m, 4));
      std::memmove(to, to + 4, 12);
      to[12] = static_cast<uint8_t>(type >> 8);
      to[13] = static_cast<uint8_t>(type);
      to[14] = to[15] = 1;
    }
    return m;
  };
  EXPECT_TRUE(send(link.a(), tagged({kEtherTypeCnTag}, 1456), 0ns));
  EXPECT_TRUE(send(link.a(), tagged({kEtherTypeCnTag, kEtherTypeVlan}, 1456), 0ns));
  EXPECT_TRUE(send(link.a(), tagged({kEtherTypeVlan, kEtherTypeSTag}, 1456), 0ns));
  EXPECT_EQ(link.a().stats().tx_dropped, 0U);
  EXPECT_TRUE(send(link.a(), tagged({kEtherTypeCnTag}, 1460), 0ns));
  EXPECT_TRUE(send(link.a(), tagged({kEtherTypeCnTag, kEtherTypeVlan, kEtherTypeSTag}, 1456), 0ns));
  EXPECT_EQ(link.a().stats().tx_dropped, 2U);
  EXPECT_EQ(drain(link.b()).size(), 3U);
}

TEST_F(SimLinkTest, waiting_reports_frames_arrived_at_the_last_poll) {
  SimLinkConfig config;
  config.a_to_b = {.rate = 10_Gbps};
  SimLink link{config, pool_};
  for (uint32_t i = 0; i < 100; ++i) ASSERT_TRUE(send(link.a(), frame(i), 0ns));  // 116.8 ns each
  EXPECT_EQ(link.b().waiting(), 0U);
  std::array<rte_mbuf*, 32> burst{};
  EXPECT_EQ(link.b().rx_burst({burst.data(), 4}, 5840ns), 4U);  // 50 frames have arrived
  rte_pktmbuf_free_bulk(burst.data(), 4);
  EXPECT_EQ(link.b().waiting(), 46U);
  EXPECT_EQ(link.b().rx_burst(burst, 11680ns), 32U);
  rte_pktmbuf_free_bulk(burst.data(), 32);
  EXPECT_EQ(link.b().waiting(), 64U);
  EXPECT_EQ(link.a().waiting(), 0U);
  drain(link.b());
}

// Within four standard deviations: fails by chance once in 16,000; the seed is fixed.
void expect_within_four_deviations(uint64_t hits, uint64_t tries, double p) {
  const auto n = static_cast<double>(tries);
  EXPECT_NEAR(static_cast<double>(hits), n * p, 4 * std::sqrt(n * p * (1 - p))) << "of " << tries;
}

TEST_F(SimLinkTest, each_fault_occurs_at_the_configured_rate) {
  SimLinkConfig config;
  config.seed = 42;
  config.a_to_b.rate = 100_Gbps;
  config.a_to_b.faults = {
      .loss = 0.1, .duplication = 0.05, .reordering = 0.02, .corruption = 0.03, .marking = 0.2};
  SimLink link{config, pool_};
  constexpr uint32_t kFrames = 50'000;
  FrameSpec spec;
  spec.traffic_class = 2;  // ECT(0)
  Nanos now{0};
  uint64_t arrived = 0, damaged = 0, ce = 0;
  const auto original = test::roce_bytes(spec);
  for (uint32_t i = 0; i < kFrames; ++i, now += 100ns) {
    ASSERT_TRUE(send(link.a(), test::to_mbuf(*pool_, original), now));
    rte_mbuf* m = nullptr;
    while (link.b().rx_burst({&m, 1}, now) == 1) {
      ++arrived;
      if (!test::icrc_is_right(m)) ++damaged;
      if (test::view_of(m).kind == FrameKind::kRoce && test::view_of(m).ecn() == Ecn::kCe) ++ce;
      rte_pktmbuf_free(m);
    }
    const auto& s = link.stats(SimLink::kAToB);
    ASSERT_EQ(s.accepted + s.duplicated, s.delivered + s.lost + s.no_buffer + s.in_flight());
  }
  arrived += drain(link.b()).size();
  const auto& s = link.stats(SimLink::kAToB);
  EXPECT_EQ(s.accepted, kFrames);
  expect_within_four_deviations(s.lost, kFrames, 0.1);
  const uint64_t survivors = kFrames - s.lost;
  expect_within_four_deviations(s.duplicated, survivors, 0.05);
  expect_within_four_deviations(s.reordered, survivors, 0.02);
  expect_within_four_deviations(s.corrupted, survivors, 0.03);
  expect_within_four_deviations(s.marked, survivors, 0.2);
  EXPECT_EQ(s.no_buffer, 0U);
  EXPECT_EQ(s.in_flight(), 0U);
  EXPECT_EQ(arrived, s.delivered);
  EXPECT_EQ(arrived, kFrames - s.lost + s.duplicated);
  // Most flipped bits are covered by the ICRC or by a length check. The other faults do not damage frames.
  EXPECT_GT(damaged, s.corrupted / 2);
  EXPECT_LE(damaged, s.corrupted * 12 / 10) << "as often as corrupted, and some of those duplicated";
  EXPECT_GT(ce, s.marked * 9 / 10);
  EXPECT_EQ(link.stats(SimLink::kBToA).accepted, 0U);
}

TEST_F(SimLinkTest, same_seed_reproduces_frames_and_arrival_times) {
  const auto run = [this](uint64_t seed) {
    SimLinkConfig config;
    config.seed = seed;
    config.a_to_b = {.rate = 25_Gbps, .delay = 3us, .queue = 4_KiB};
    config.a_to_b.faults = {
        .loss = 0.1, .duplication = 0.1, .reordering = 0.1, .corruption = 0.1, .marking = 0.1};
    SimLink link{config, pool_};
    for (uint32_t i = 0; i < 500; ++i) {
      rte_mbuf* m = frame(i, 4 * (i % 100));
      if (!send(link.a(), m, Nanos{i * 50})) rte_pktmbuf_free(m);
    }
    return drain(link.b());
  };
  const auto first = run(5);
  EXPECT_GT(first.size(), 100U);
  EXPECT_EQ(first, run(5));
  EXPECT_NE(first, run(6));
}

TEST_F(SimLinkTest, corruption_affects_all_bytes_after_the_ethernet_header_only) {
  SimLinkConfig config;
  config.a_to_b.faults = {.corruption = 1, .corruption_bits = 3};
  SimLink link{config, pool_};
  const auto original = test::roce_bytes({.payload = 8});
  std::vector<bool> touched(original.size(), false);
  for (int i = 0; i < 3000; ++i) {
    ASSERT_TRUE(send(link.a(), test::to_mbuf(*pool_, original), 0ns));
    rte_mbuf* m = nullptr;
    ASSERT_EQ(link.b().rx_burst({&m, 1}, 0ns), 1U);
    const auto now = test::bytes_of(m);
    rte_pktmbuf_free(m);
    int flips = 0;
    for (size_t k = 0; k < original.size(); ++k) {
      flips += __builtin_popcount(static_cast<unsigned>(now[k] ^ original[k]));
      if (now[k] != original[k]) touched[k] = true;
    }
    ASSERT_GE(flips, 1);
    ASSERT_LE(flips, 3);
  }
  for (size_t k = 0; k < original.size(); ++k) EXPECT_EQ(touched[k], k >= 14) << "byte " << k;
}

TEST_F(SimLinkTest, marking_keeps_header_checksum_and_icrc_valid) {
  SimLinkConfig config;
  config.a_to_b.faults.marking = 1;
  SimLink link{config, pool_};
  for (const bool v6 : {false, true}) {
    for (const std::optional<uint16_t> vlan : {std::optional<uint16_t>{}, std::optional<uint16_t>{0x6005}}) {
      for (uint8_t ecn = 0; ecn < 4; ++ecn) {
        FrameSpec spec;
        spec.vlan = vlan;
        spec.traffic_class = static_cast<uint8_t>(0x68 | ecn);
        if (v6) {
          spec.from = *IpAddress::parse("fd00::1");
          spec.to = *IpAddress::parse("fd00::2");
        }
        ASSERT_TRUE(send(link.a(), test::roce_mbuf(*pool_, spec), 0ns));
        rte_mbuf* m = nullptr;
        ASSERT_EQ(link.b().rx_burst({&m, 1}, 0ns), 1U);
        EXPECT_TRUE(test::icrc_is_right(m)) << "parse_frame() checks the IPv4 checksum on the way";
        // Not ECN-capable stays unchanged, all others become CE.
        const uint8_t expected = ecn == 0 ? 0x68 : 0x6b;
        EXPECT_EQ(test::view_of(m).traffic_class(), expected);
        rte_pktmbuf_free(m);
      }
    }
  }
  EXPECT_EQ(link.stats(SimLink::kAToB).marked, 8U) << "two of four codepoints change";
}

TEST_F(SimLinkTest, script_applies_faults_to_selected_frames) {
  SimLinkConfig config;
  config.a_to_b = {.rate = 0_Gbps, .delay = 100ns};
  SimLink link{config, pool_};
  link.set_script(SimLink::kAToB, [](const rte_mbuf&, uint64_t index) {
    SimVerdict v;
    if (index == 1) v.drop = true;
    if (index == 2) v.extra_delay = 50ns;
    if (index == 3) v.duplicates = 2;
    if (index == 4) v.flip_bits = {8 * 60 + 1};
    return v;
  });
  for (uint32_t i = 0; i < 6; ++i) ASSERT_TRUE(send(link.a(), frame(i), 0ns));
  const auto seen = drain(link.b());
  std::vector<uint32_t> order;
  for (const TimedFrame& s : seen) order.push_back(number(s));
  EXPECT_EQ(order, (std::vector<uint32_t>{0, 3, 3, 3, 4, 5, 2}));
  EXPECT_EQ(seen.back().at, 150ns);
  auto damaged = test::roce_bytes({.number = 4});
  EXPECT_NE(seen[4].bytes, damaged);
  damaged[60] ^= 2;
  EXPECT_EQ(seen[4].bytes, damaged);
}

TEST_F(SimLinkTest, shared_frame_is_copied_and_not_modified) {
  SimLinkConfig config;
  config.a_to_b = {.delay = 1us};
  config.a_to_b.faults.corruption = 1;
  SimLink link{config, pool_};
  const auto original = test::roce_bytes({});
  rte_mbuf* kept = test::to_mbuf(*pool_, original);
  rte_mbuf* clone = rte_pktmbuf_clone(kept, pool_->get());
  ASSERT_NE(clone, nullptr);
  rte_mbuf_refcnt_update(kept, 1);  // the sender keeps it for a retransmission
  ASSERT_TRUE(send(link.a(), kept, 0ns));
  ASSERT_TRUE(send(link.a(), clone, 0ns));
  EXPECT_EQ(test::bytes_of(kept), original);
  EXPECT_EQ(rte_mbuf_refcnt_read(kept), 1);
  std::memset(rte_pktmbuf_mtod(kept, void*), 0, kept->data_len);  // the sender builds another packet in it
  rte_pktmbuf_free(kept);
  const auto seen = drain(link.b());
  ASSERT_EQ(seen.size(), 2U);
  for (const TimedFrame& s : seen) {
    EXPECT_NE(s.bytes, original);
    EXPECT_TRUE(std::equal(s.bytes.begin(), s.bytes.begin() + 14, original.begin()));
  }
}

TEST_F(SimLinkTest, chained_frame_arrives_whole_and_faults_reach_its_last_segment) {
  SimLink link{SimLinkConfig{}, pool_};
  const auto original = test::roce_bytes({.payload = 256});
  const auto cut = original.begin() + 60;
  rte_mbuf* head = test::to_mbuf(*pool_, {original.begin(), cut});
  ASSERT_EQ(rte_pktmbuf_chain(head, test::to_mbuf(*pool_, {cut, original.end()})), 0);
  link.set_script(SimLink::kAToB,
                  [](const rte_mbuf& m, uint64_t) { return SimVerdict{.flip_bits = {8 * (m.pkt_len - 1)}}; });
  ASSERT_TRUE(send(link.a(), head, 0ns));
  const auto seen = drain(link.b());
  ASSERT_EQ(seen.size(), 1U);
  auto expected = original;
  expected.back() ^= 1;
  EXPECT_EQ(seen[0].bytes, expected);
}

TEST_F(SimLinkTest, duplicate_without_a_buffer_is_counted_and_the_frame_arrives) {
  auto tiny = MbufPool::create("tiny", 1, 2048);
  ASSERT_TRUE(tiny) << tiny.error().message;
  std::vector<rte_mbuf*> hold;
  while (rte_mbuf* m = rte_pktmbuf_alloc((*tiny)->get())) hold.push_back(m);
  SimLinkConfig config;
  config.a_to_b.faults.duplication = 1;
  {
    SimLink link{config, *tiny};
    ASSERT_TRUE(send(link.a(), frame(0), 0ns));
    EXPECT_EQ(drain(link.b()).size(), 1U);
    const auto& s = link.stats(SimLink::kAToB);
    EXPECT_EQ(s.no_buffer, 1U);
    EXPECT_EQ(s.in_flight(), 0U);
  }
  for (rte_mbuf* m : hold) rte_pktmbuf_free(m);
}

TEST_F(SimLinkTest, destruction_frees_frames_in_flight) {
  SimLinkConfig config;
  config.a_to_b = {.rate = 1_Gbps, .delay = 1s};
  SimLink link{config, pool_};
  for (uint32_t i = 0; i < 100; ++i) ASSERT_TRUE(send(link.a(), frame(i), 0ns));
  EXPECT_EQ(pool_->in_use(), 100U);
}  // TearDown() checks that the pool has no frames in use

// A sender that always has a frame, and a receiver that is polled at arrivals.
class Sender : public Poller {
 public:
  Sender(Port& port, const MbufPool& pool, uint32_t count) : port_(port), pool_(pool), left_(count) {}
  ~Sender() override { rte_pktmbuf_free(waiting_); }
  bool poll(Nanos now) override {
    bool worked = false;
    while (left_ > 0) {
      if (waiting_ == nullptr) waiting_ = test::roce_mbuf(pool_);
      if (port_.tx_burst({&waiting_, 1}, now) == 0) break;
      waiting_ = nullptr;
      --left_;
      worked = true;
    }
    return worked;
  }
  [[nodiscard]] Nanos next_deadline() const override { return left_ > 0 ? Nanos{0} : kNever; }
  [[nodiscard]] std::string_view name() const override { return "sender"; }

 private:
  Port& port_;
  const MbufPool& pool_;
  uint32_t left_;
  rte_mbuf* waiting_ = nullptr;
};

class Receiver : public Poller {
 public:
  explicit Receiver(Port& port) : port_(port) {}
  bool poll(Nanos now) override {
    std::array<rte_mbuf*, 32> batch;
    const uint16_t n = port_.rx_burst(batch, now);
    rte_pktmbuf_free_bulk(batch.data(), n);
    count += n;
    if (n > 0) last = now;
    return n > 0;
  }
  [[nodiscard]] Nanos next_deadline() const override { return port_.next_arrival(); }
  [[nodiscard]] std::string_view name() const override { return "receiver"; }
  uint32_t count = 0;
  Nanos last{0};

 private:
  Port& port_;
};

TEST_F(SimLinkTest, saturating_sender_reaches_exact_line_rate_in_virtual_time) {
  SimLinkConfig config;
  config.a_to_b = {.rate = 10_Gbps, .delay = 5us, .queue = 2_KiB};
  SimLink link{config, pool_};
  Sender sender{link.a(), *pool_, 10'000};
  Receiver receiver{link.b()};
  VirtualRunner runner;
  runner.add(sender);
  runner.add(link);
  runner.add(receiver);
  const auto idle = runner.run_until_idle(1s);
  ASSERT_TRUE(idle) << idle.error().message;
  EXPECT_TRUE(*idle);
  EXPECT_EQ(receiver.count, 10'000U);
  EXPECT_EQ(receiver.last, 1168us + 5us);  // 10,000 frames of 116.8 ns
}

// Many flows between ports with four queues. Each flow must arrive in one queue, in order. All queues are used. Other
// frames than RoCEv2 arrive in queue 0.
TEST_F(SimLinkTest, each_flow_arrives_in_one_queue_in_order) {
  SimLinkConfig config;
  config.queues = {1, 4};
  config.a_to_b.delay = 1us;
  SimLink link(config, pool_);
  ASSERT_EQ(link.a().queues(), 1);
  ASSERT_EQ(link.b().queues(), 4);
  constexpr uint32_t kFlows = 40, kFrames = 5;
  for (uint32_t n = 0; n < kFrames; ++n) {
    for (uint32_t flow = 0; flow < kFlows; ++flow) {
      FrameSpec spec;
      spec.from = IpAddress::from_v4(0x0a000100 + flow);
      spec.number = n;
      ASSERT_TRUE(send(link.a(), test::roce_mbuf(*pool_, spec), 0ns));
    }
  }
  ASSERT_TRUE(send(link.a(), test::to_mbuf(*pool_, std::vector<uint8_t>(60)), 0ns));

  std::vector<uint16_t> queue_of(kFlows, UINT16_MAX);
  std::vector<uint32_t> next(kFlows);
  size_t others = 0;
  for (uint16_t q = 0; q < 4; ++q) {
    EXPECT_EQ(link.b().queue(q).next_arrival(), 1us);
    size_t of_queue = 0;
    std::array<rte_mbuf*, 32> burst{};
    while (const uint16_t got = link.b().queue(q).rx_burst(burst, 1us)) {
      for (uint16_t i = 0; i < got; ++i) {
        const FrameView view = test::view_of(burst[i]);
        if (view.kind == FrameKind::kRoce) {
          const uint32_t flow = view.source_ip().v4() - 0x0a000100;
          EXPECT_EQ(next[flow]++, view.psn().value());
          if (queue_of[flow] == UINT16_MAX) queue_of[flow] = q;
          EXPECT_EQ(queue_of[flow], q);
          ++of_queue;
        } else {
          EXPECT_EQ(q, 0);
          ++others;
        }
        rte_pktmbuf_free(burst[i]);
      }
    }
    EXPECT_GE(of_queue, 4 * kFrames);
  }
  EXPECT_EQ(others, 1U);
  EXPECT_EQ(link.stats(SimLink::kAToB).delivered, kFlows * kFrames + 1);
  EXPECT_EQ(link.b().stats().rx_packets, kFlows * kFrames + 1);
}

}  // namespace
}  // namespace roci
