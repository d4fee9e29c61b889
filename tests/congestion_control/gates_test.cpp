// Effect of window, rate and gap on packets, with algorithms that decide only once.
#include "congestion_control/fan_in.hpp"

namespace roci::test {
namespace {

TEST(Gates, rate_limit_sets_exact_packet_spacing) {
  FanInOptions options;
  options.senders = options.flows = 1;
  options.control = with_profile("static_rate", {{"rate", 7e9}});
  FanIn net(options);
  std::vector<Nanos> sent;
  net.link(0).set_script(SimLink::kAToB, [&](const rte_mbuf& frame, uint64_t) {
    if (frame.pkt_len > 1000) sent.push_back(net.runner.now());
    return SimVerdict{};
  });
  net.drive(100us);
  const auto rates = net.measure(10ms);
  // 1024 bytes of payload are 1106 bytes on the line.
  EXPECT_NEAR(rates.sum, 7e9 * 1024 / 1106, 7e9 * 0.001);
  ASSERT_GT(sent.size(), 1000U);
  for (size_t i = 1; i < sent.size(); ++i) {
    const auto apart = (sent[i] - sent[i - 1]).count();
    ASSERT_GE(apart, 1106 * 8 / 7 - 1) << i;  // 1264 ns
    ASSERT_LE(apart, 1106 * 8 / 7 + 25) << i << ": RETHs are not counted, nor is what a turn takes";
  }
}

TEST(Gates, window_limits_bytes_in_flight_including_headers) {
  for (const uint64_t packets : {1U, 3U, 20U}) {
    FanInOptions options;
    options.senders = options.flows = 1;
    options.control = with_profile("static_window", {{"window", static_cast<double>(packets * 1106 + 100)}});
    FanIn net(options);
    uint64_t out = 0, most = 0;
    auto& requester = static_cast<ReliableQueuePair&>(net.core(0)).requester;
    net.link(0).set_script(SimLink::kAToB, [&](const rte_mbuf& frame, uint64_t) {
      if (frame.pkt_len > 1000) ++out;
      most = std::max(most, out - requester.flow().acknowledged.value() / 1024);
      return SimVerdict{};
    });
    net.drive(200us);
    EXPECT_EQ(most, packets);
    const auto rates = net.measure(2ms);
    // Four times 1 us, twice 1106 bytes at 100 Gb/s, once the ACK. One full window per round trip.
    EXPECT_NEAR(rates.sum, static_cast<double>(packets) * 1024 * 8 / 4.2e-6, 0.05 * rates.sum) << packets;
  }
}

// A message without payload has headers, too.
TEST(Gates, headers_of_empty_messages_count_against_window) {
  FanInOptions options;
  options.senders = options.flows = 1;
  options.control = with_profile("static_window", {{"window", 10 * (58 + 24) + 16}});
  FanIn net(options);
  uint64_t out = 0;
  net.link(0).set_script(SimLink::kAToB, [&](const rte_mbuf&, uint64_t) {
    ++out;
    return SimVerdict{};
  });
  for (int i = 0; i < 60; ++i) net.post(0, 0);
  net.run(3us);  // no acknowledgment can have arrived
  EXPECT_EQ(out, 10U);
  net.run(1ms);
  EXPECT_EQ(out, 60U);
}

TEST(Gates, rate_limit_paces_read_responses_at_the_responder) {
  FanInOptions options;
  options.senders = options.flows = 1;
  options.reads = true;
  options.extensions.mode = ExtensionMode::kOff;
  options.control = with_profile("static_rate", {{"rate", 3e9}});
  FanIn net(options);
  net.drive(1ms);
  EXPECT_NEAR(net.measure(10ms).sum, 3e9 * 1024 / 1106, 3e9 * 0.002);
}

// Standard peers do not acknowledge READ responses.
TEST(Gates, window_for_reads_requires_acknowledged_responses) {
  for (const auto mode : {ExtensionMode::kAuto, ExtensionMode::kOff}) {
    FanInOptions options;
    options.senders = options.flows = 1;
    options.reads = true;
    options.extensions.mode = mode;
    options.control = with_profile("static_window", {{"window", 5 * 1106}});
    FanIn net(options);
    net.drive(1ms);
    const double rate = net.measure(2ms).sum;
    if (mode == ExtensionMode::kAuto) {
      EXPECT_NEAR(rate, 5 * 1024 * 8 / 4.2e-6, 0.05 * rate);
      EXPECT_NE(net.control(0, ROCI_CC_RESPONSES), nullptr);
    } else {
      EXPECT_EQ(net.control(0, ROCI_CC_RESPONSES), nullptr);
      EXPECT_GT(rate, 80e9);
    }
  }
}

// The flow sends no further packet, so a remaining deadline would make the worker poll it forever.
TEST(Gates, failed_queue_pair_cancels_its_gate_deadline) {
  for (const ibv_qp_type type : {IBV_QPT_RC, IBV_QPT_UC}) {
    FanInOptions options;
    options.senders = 1;
    options.flows = 0;
    options.control = with_profile("static_rate", {{"rate", 1e6}});
    FanIn net(options);
    Side& sender = *net.hosts[0];
    const auto qp = make_service(sender, type);
    connect_to(*qp, type, must(net.receiver().device->query_gid(1)), 77);
    const QueuePairCore& core = *net.find(sender, *qp);
    const auto held = [&] { return core.gates->requests.opens_at() != kNever; };
    net.run(20ms);  // address resolution
    ASSERT_EQ(send(sender, *qp, {.opcode = IBV_WR_RDMA_WRITE, .length = 3000}), 0);
    net.run(100us);
    ASSERT_TRUE(held()) << type;
    move_to(*qp, IBV_QPS_ERR);
    net.run(100us);
    EXPECT_FALSE(held()) << type;
    EXPECT_EQ(core.deadline(), kNever) << type;
  }
}

TEST(Gates, flow_without_control_is_not_delayed) {
  FanInOptions options;
  options.senders = options.flows = 1;
  FanIn net(options);
  net.drive(1ms);
  EXPECT_EQ(net.control(0), nullptr);
  EXPECT_GT(net.measure(2ms).sum, 0.99 * net.most_goodput());
}

}  // namespace
}  // namespace roci::test
