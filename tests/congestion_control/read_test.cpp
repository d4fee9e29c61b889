// Congestion control of READ: the responder sends the data and runs the algorithm. READs of one host from many
// responders.
#include "congestion_control/settings.hpp"
#include "support/ports/frames.hpp"

namespace roci::test {
namespace {

FanInOptions reads(const CongestionControlConfig& control, const AqmConfig& aqm) {
  FanInOptions options;
  options.reads = true;
  options.control = control;
  options.aqm = aqm;
  return options;
}

// With acknowledged responses (wire extensions), and the same thresholds as WRITEs.
TEST(ReadFanIn, ldcp_shares_the_line_with_a_short_queue) {
  FanIn net(reads(with_profile("ldcp"), ldcp_aqm()));
  net.take_queue();
  net.drive(1ms);
  EXPECT_LE(FanIn::percentile(net.take_queue(), 1), 100'000U);
  const uint64_t first_drops = net.port_counters().dropped();
  EXPECT_GT(first_drops, 100U);
  const auto rates = net.measure(kSlowMachine ? 5ms : 20ms);
  const auto queue = net.take_queue();
  note(rates, queue);
  EXPECT_LE(FanIn::percentile(queue, 0.99), 25'000U);
  EXPECT_GE(rates.sum, 0.99 * net.most_goodput());
  EXPECT_GE(rates.jain, kSlowMachine ? 0.98 : 0.99);
  EXPECT_EQ(net.port_counters().dropped(), first_drops);
  EXPECT_EQ(first_drops, net.port_counters().dropped(DropReason::kEarlyDrop));
  EXPECT_EQ(net.total("timeouts"), 0U) << "the reader asks again as soon as it sees a gap";
}

// At most one window is sent before the first acknowledgment. Its last packet is ECN-capable, so switches do not drop
// it.
TEST(ReadFanIn, ldcp_sends_last_packet_of_first_window_ecn_capable) {
  FanInOptions options = reads(with_profile("ldcp"), ldcp_aqm());
  options.senders = options.flows = 1;
  FanIn net(options);
  std::vector<bool> ecn_capable;
  net.link(0).set_script(SimLink::kAToB, [&](const rte_mbuf& frame, uint64_t) {
    if (frame.pkt_len > 1000) ecn_capable.push_back((bytes_of(&frame)[15] & 3) != 0);
    return SimVerdict{};
  });
  net.link(0).set_script(SimLink::kBToA, [](const rte_mbuf& frame, uint64_t) {
    SimVerdict verdict;
    verdict.drop = bytes_of(&frame)[42] == static_cast<uint8_t>(Opcode::kCcReadAcknowledge);
    return verdict;
  });
  net.drive(100us);
  ASSERT_EQ(ecn_capable.size(), 51U) << "100 Gb/s for 4.5 us in packets of 1106 bytes";
  for (size_t i = 0; i + 1 < ecn_capable.size(); ++i) EXPECT_FALSE(ecn_capable[i]) << i;
  EXPECT_TRUE(ecn_capable.back());
}

TEST(ReadFanIn, hpcc_uses_eta_of_the_line_with_a_short_queue) {
  FanInOptions options = reads(with_profile("hpcc", {{"w_ai", 80}}, 4200ns), {});
  options.telemetry = all_telemetry();
  FanIn net(options);
  net.drive(2ms);
  net.take_queue();
  const auto rates = net.measure(kSlowMachine ? 1ms : 5ms);
  const auto queue = net.take_queue();
  note(rates, queue);
  EXPECT_GE(rates.sum, 0.95 * 0.95 * net.most_goodput());
  EXPECT_GE(rates.jain, 0.99);
  EXPECT_LE(FanIn::percentile(queue, 0.99), 15'000U);
}

// Standard peers: READ responses are not acknowledged, so the reader's CNPs are the only feedback.
TEST(ReadFanIn, dcqcn_controls_reads_like_writes_without_extensions) {
  FanIn::Rates rates[2];
  uint64_t p99[2];
  for (const bool read : {false, true}) {
    SCOPED_TRACE(read);
    FanInOptions options;
    options.reads = read;
    options.extensions.mode = ExtensionMode::kOff;
    options.control = with_profile("dcqcn");
    options.aqm = dcqcn_aqm(options.rate);
    FanIn net(options);
    net.drive(8ms);
    net.take_queue();
    rates[read] = net.measure(kSlowMachine ? 2ms : 8ms);
    const auto queue = net.take_queue();
    note(rates[read], queue, read ? "read_" : "write_");
    p99[read] = FanIn::percentile(queue, 0.99);
    EXPECT_GT(net.receiver().counter("np_cnp_sent"), 1000U);
    EXPECT_GT(net.control(0, read ? ROCI_CC_RESPONSES : ROCI_CC_REQUESTS)->events.load(), 100U);
    EXPECT_EQ(net.port_counters().dropped(), 0U);
    EXPECT_GE(rates[read].sum, 0.75 * net.most_goodput());
    EXPECT_GE(rates[read].jain, 0.95);
    EXPECT_LE(p99[read], 6'000'000U) << "of 32 MB at first";
  }
  EXPECT_NEAR(rates[0].sum, rates[1].sum, 0.1 * rates[0].sum);
  EXPECT_LE(p99[1], 2 * p99[0]);
}

}  // namespace
}  // namespace roci::test
