#include "switch/switch_bench.hpp"

namespace roci {
namespace {

class QueueTest : public SwitchTest {
 protected:
  // Two ports. The second sends at `rate` and queues up to `limit` bytes. The switch has learned both hosts.
  void make_bottleneck(BitsPerSec rate, Bytes limit) {
    SwitchConfig config = ports(2);
    config.ports[1].rate = rate;
    config.ports[1].queue = limit;
    make(config);
    introduce({0, 1});
  }
  void burst(uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) {
      send(0, test::roce_bytes({.destination = host_mac(1), .source = host_mac(0), .number = i}));
    }
  }
  static constexpr uint32_t kFrame = 122;  // length of a frame; 146 bytes on the wire: 1168 ns at 1 Gb/s
};

TEST_F(QueueTest, byte_limit_is_exact_and_excess_frames_are_tail_dropped) {
  // The first frame is sent at once, five wait, the rest exceeds the limit.
  make_bottleneck(1_Gbps, Bytes{5 * kFrame});
  burst(1);
  settle();
  burst(9);
  settle();
  EXPECT_EQ(dropped(1, DropReason::kQueueFull), 4U);
  EXPECT_EQ(switch_->counters(1).queue_bytes, 5 * kFrame);
  EXPECT_EQ(switch_->counters(1).queue_packets, 5U);
  EXPECT_EQ(switch_->counters(1).queue_peak_bytes, 5 * kFrame);
  wait(1ms);
  const auto got = heard(1);
  ASSERT_EQ(got.size(), 6U);
  for (uint32_t i = 1; i < 6; ++i)
    EXPECT_EQ(view(got[i]).psn().value(), i - 1) << "the first of the burst, in order";
  EXPECT_EQ(switch_->counters(1).queue_bytes, 0U);
  EXPECT_EQ(switch_->counters(1).queue_peak_bytes, 5 * kFrame);
}

TEST_F(QueueTest, limit_one_byte_lower_holds_one_frame_less) {
  make_bottleneck(1_Gbps, Bytes{5 * kFrame - 1});
  burst(1);
  settle();
  burst(9);
  settle();
  EXPECT_EQ(dropped(1, DropReason::kQueueFull), 5U);
  wait(1ms);
  EXPECT_EQ(heard(1).size(), 5U);
}

TEST_F(QueueTest, frame_limit_is_enforced) {
  SwitchConfig config = ports(2);
  config.ports[1].rate = 1_Gbps;
  config.ports[1].queue_frames = 3;
  make(config);
  introduce({0, 1});
  burst(1);
  settle();
  burst(9);
  settle();
  EXPECT_EQ(dropped(1, DropReason::kQueueFull), 6U);
  EXPECT_EQ(switch_->counters(1).queue_packets, 3U);
}

TEST_F(QueueTest, frames_leave_at_the_drain_rate_to_the_nanosecond) {
  make_bottleneck(10_Gbps, 1_MiB);
  wait(1us);
  const Nanos begin = runner_.now();
  burst(1000);
  uint32_t next = 0;
  const auto all = runner_.run_while([&] {
    for (const auto& bytes : heard(1)) {
      EXPECT_EQ(view(bytes).psn().value(), next);
      // 146 bytes take 116.8 ns; a start between two nanoseconds is rounded up.
      EXPECT_EQ(runner_.now() - begin, Nanos{(static_cast<int64_t>(next) * 1168 + 9) / 10});
      ++next;
    }
    return next < 1000;
  });
  ASSERT_TRUE(all && *all);
  EXPECT_EQ(switch_->counters(1).tx_packets, 1000U);
}

TEST_F(QueueTest, idle_line_sends_at_once) {
  make_bottleneck(1_Gbps, 1_MiB);
  for (int i = 0; i < 3; ++i) {
    wait(1168ns);
    burst(1);
    settle();
    EXPECT_EQ(heard(1).size(), 1U);
  }
  burst(1);
  settle();
  EXPECT_EQ(heard(1).size(), 0U) << "the line is still busy with the one before";
  wait(1168ns);
  EXPECT_EQ(heard(1).size(), 1U);
}

TEST_F(QueueTest, without_a_rate_all_frames_leave_at_once) {
  make_bottleneck(BitsPerSec{0}, 1_MiB);
  burst(500);
  settle();
  EXPECT_EQ(heard(1).size(), 500U);
}

TEST_F(QueueTest, frames_rejected_by_the_port_wait_in_order) {
  // The queue has no rate limit. The link has one, and accepts two frames at a time.
  SimLinkConfig link;
  link.b_to_a = {.rate = 1_Gbps, .queue = Bytes{2 * kFrame}};
  make(ports(2), link);
  introduce({0, 1});
  burst(50);
  settle();
  EXPECT_EQ(switch_->counters(1).queue_packets, 48U);
  wait(50 * 1168ns);
  const auto got = heard(1);
  ASSERT_EQ(got.size(), 50U);
  for (uint32_t i = 0; i < 50; ++i) EXPECT_EQ(view(got[i]).psn().value(), i);
}

TEST_F(QueueTest, late_poll_catches_up_without_exceeding_the_rate) {
  make_bottleneck(1_Gbps, 1_MiB);
  burst(1);
  const Nanos begin = runner_.now();
  switch_->poll(begin);
  burst(100);
  // Polled every 10 us instead of every 1168 ns, as by a busy runner.
  size_t got = 0;
  for (Nanos at = begin; at <= begin + 200us; at += 10us) {
    while (switch_->poll(at)) {
    }
    rte_mbuf* m = nullptr;
    while (links_[1]->a().rx_burst({&m, 1}, at) == 1) {
      rte_pktmbuf_free(m);
      ++got;
    }
    const auto due = static_cast<size_t>((at - begin) / 1168ns) + 1;
    EXPECT_EQ(got, std::min<size_t>(due, 101));
  }
}

TEST_F(QueueTest, destruction_frees_queued_frames) {
  make_bottleneck(1_Mbps, 1_MiB);
  burst(100);
  settle();
  EXPECT_GT(switch_->counters(1).queue_packets, 90U);
}  // TearDown() checks that the pool has no frames in use

TEST_F(QueueTest, each_received_frame_is_sent_or_counted_as_dropped) {
  SwitchConfig config = ports(3);
  for (auto& p : config.ports) {
    p.rate = 1_Gbps;
    p.queue = 8_KiB;
  }
  SimLinkConfig link;
  link.a_to_b.faults = {.loss = 0.01, .duplication = 0.05, .corruption = 0.05};
  make(config, link);
  introduce({0, 1, 2});
  Rng rng{3};
  for (int i = 0; i < 5000; ++i) {
    const size_t from = rng.below(3), to = (from + 1 + rng.below(2)) % 3;
    send(from, test::roce_bytes({.destination = host_mac(to),
                                 .source = host_mac(from),
                                 .payload = static_cast<uint32_t>(4 * rng.below(256))}));
    wait(Nanos{static_cast<int64_t>(rng.below(3000))});
    counts();
  }
  wait(1s);
  counts();
  uint64_t in = 0, out = 0, dropped_all = 0, flooded = 0;
  for (size_t i = 0; i < 3; ++i) {
    const auto& c = switch_->counters(i);
    in += c.rx_packets;
    out += c.tx_packets;
    dropped_all += c.dropped();
    flooded += c.flooded;
    EXPECT_GT(c.dropped(DropReason::kQueueFull), 0U);
    EXPECT_LE(c.queue_peak_bytes, 8U << 10);
  }
  EXPECT_EQ(in + flooded, out + dropped_all) << "a flooded frame leaves by two ports";
}

}  // namespace
}  // namespace roci
