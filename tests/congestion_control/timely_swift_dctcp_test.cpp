// Widely used algorithms: DCTCP, TIMELY, Swift, QCN, and the rate variant of LDCP. 16 senders to one at 100 Gb/s with
// a round-trip time of 4.2 us. Parameters for other rates are scaled as the plugins specify.
#include "congestion_control/settings.hpp"
#include "wire/cnm/congestion_notification.hpp"

namespace roci::test {
namespace {

struct QueueResult {
  FanIn::Rates rates;
  double part = 0;
  uint64_t peak = 0, p50 = 0, p95 = 0, p99 = 0;
};
QueueResult run_and_measure_queue(const FanInOptions& options, Nanos warm, Nanos span) {
  FanIn net(options);
  net.take_queue();
  net.drive(warm);
  QueueResult result;
  result.peak = FanIn::percentile(net.take_queue(), 1);
  result.rates = net.measure(kSlowMachine ? span / 4 : span);
  const auto queue = net.take_queue();
  note(result.rates, queue);
  note("peak", result.peak);
  result.part = result.rates.sum / net.most_goodput();
  result.p50 = FanIn::percentile(queue, 0.5);
  result.p95 = FanIn::percentile(queue, 0.95);
  result.p99 = FanIn::percentile(queue, 0.99);
  EXPECT_EQ(net.port_counters().dropped(), 0U);
  EXPECT_EQ(net.total("timeouts"), 0U);
  return result;
}

// K = 80 KB, above the minimum of RFC 8257 (B * T / 7). The queue stays near K and the line is full.
TEST(TimelySwiftDctcp, dctcp_keeps_queue_near_its_threshold) {
  FanInOptions options;
  options.control = with_profile("dctcp");
  options.aqm = step_aqm(80'000);
  const QueueResult result = run_and_measure_queue(options, 2ms, 10ms);
  EXPECT_GE(result.part, 0.99);
  EXPECT_GE(result.rates.jain, 0.97);
  EXPECT_GE(result.p50, 55'000U);
  EXPECT_LE(result.p99, 120'000U);
}

// With thresholds of 50 and 500 us a path of 4 us would never have a long queue; scaled they are 10.5 and 105 us.
// TIMELY has no unique equilibrium: any shares that fill the line may persist (Zhu et al., "ECN or Delay", CoNEXT
// 2016), as they do here.
TEST(TimelySwiftDctcp, timely_fills_the_line_and_bounds_the_queue_without_starvation) {
  FanInOptions options;
  options.control = with_profile("timely", {}, 4200ns);
  options.extensions.timestamps = true;
  const QueueResult result = run_and_measure_queue(options, kSlowMachine ? 1ms : 20ms, 10ms);
  EXPECT_LE(result.p99, 1'000'000U) << "t_high is 1.3 MB of queue; the first windows make 8 MB";
  if (kSlowMachine) return;  // the rates rise for 20 ms
  EXPECT_GE(result.part, 0.90);
  EXPECT_GT(result.rates.least, 100e6) << "yet nobody starves";
}

// With larger steps it converges to fair shares, and uses less of the line.
TEST(TimelySwiftDctcp, timely_is_fair_with_large_steps) {
  FanInOptions options;
  options.control = with_profile("timely", {{"delta", 100e6}}, 4200ns);
  options.extensions.timestamps = true;
  const QueueResult result = run_and_measure_queue(options, kSlowMachine ? 1ms : 20ms, 10ms);
  EXPECT_LE(result.p99, 500'000U);
  if (kSlowMachine) return;
  EXPECT_GE(result.part, 0.75);
  EXPECT_GE(result.rates.jain, 0.9);
}

// The target is 1.25 round-trip times plus flow scaling for windows of a few packets.
TEST(TimelySwiftDctcp, swift_keeps_queue_near_its_target_delay) {
  FanInOptions options;
  options.control = with_profile("swift", {}, 4200ns);
  options.extensions.timestamps = true;
  const QueueResult result = run_and_measure_queue(options, 2ms, 10ms);
  EXPECT_GE(result.part, 0.97);
  EXPECT_GE(result.rates.jain, 0.99);
  EXPECT_LE(result.p99, 90'000U);
}

// Qeq and rates scaled to the line rate, cycles of 300 us instead of 15 ms (round-trip time of 4 us).
TEST(TimelySwiftDctcp, qcn_converges) {
  FanInOptions options;
  options.control = with_profile("qcn", {{"rpg_time_reset", 300e3}});
  options.qcn = true;
  const QueueResult result =
      run_and_measure_queue(options, kSlowMachine ? 1ms : 10ms, kSlowMachine ? 4ms : 20ms);
  EXPECT_GE(result.part, 0.75);
  if (kSlowMachine) return;
  EXPECT_GE(result.rates.jain, 0.8);
  EXPECT_LE(result.p99, 1'000'000U) << "Qeq is 260 KB";
}

// A UC sender receives nothing but the notification.
TEST(TimelySwiftDctcp, qcn_reduces_rate_when_notification_arrives_on_idle_queue_pair) {
  FanInOptions options;
  options.senders = 1;
  options.flows = 0;
  options.attacker = true;
  options.control = with_profile("qcn");
  options.qcn = true;
  options.qeq = Bytes{30'000};
  FanIn net(options, [](SwitchConfig& config) { config.ports[1].rate = 10_Gbps; });
  Side& sender = *net.hosts[0];
  const auto qp = make_service(sender, IBV_QPT_UC);
  connect_to(*qp, IBV_QPT_UC, must(net.receiver().device->query_gid(1)), 77);
  ByteVector cnm;
  net.link(0).set_script(SimLink::kBToA, [&](const rte_mbuf& frame, uint64_t) {
    SimVerdict verdict;
    const auto bytes = bytes_of(&frame);
    verdict.drop = parse_cnm_frame(bytes).outcome == CnmOutcome::kAccepted;
    if (verdict.drop) cnm = bytes;
    return verdict;
  });
  net.run(20ms);  // address resolution
  ASSERT_EQ(send(sender, *qp, {.opcode = IBV_WR_RDMA_WRITE, .length = 1 << 20}), 0);
  net.run(10ms);
  ASSERT_FALSE(cnm.empty());
  ControlFlow* const flow = CongestionControl::of(*net.find(sender, *qp))->directions[ROCI_CC_REQUESTS].flow;
  ASSERT_NE(flow, nullptr);
  EXPECT_EQ(flow->published.read().rate, options.rate.value());
  // The switch drops frames with its own address as source.
  const MacAddress source = MacAddress::local(99);
  std::memcpy(cnm.data() + 6, &source, 6);
  net.link(0).set_script(SimLink::kBToA, nullptr);
  net.inject(cnm);
  net.run(10us);
  EXPECT_EQ(sender.counter("cnms_taken"), 1U);
  EXPECT_EQ(flow->last_kinds.load(), ROCI_CC_ON_CNM);
  EXPECT_LT(flow->published.read().rate, options.rate.value());
  move_to(*qp, IBV_QPS_ERR);
  net.run(1ms);
}

// draft-dai section 3.2: only CNPs and probes, no acknowledgments.
TEST(TimelySwiftDctcp, ldcp_pcc_shares_the_line_with_cnps_and_probes) {
  FanInOptions options;
  options.control = with_profile("ldcp_pcc");
  options.aqm = ldcp_aqm();
  options.aqm.drop = {};
  const QueueResult result = run_and_measure_queue(options, kSlowMachine ? 5ms : 10ms, 10ms);
  EXPECT_GE(result.part, 0.93);
  EXPECT_GE(result.rates.jain, 0.97);
  EXPECT_LE(result.p99, 60'000U);
}

}  // namespace
}  // namespace roci::test
