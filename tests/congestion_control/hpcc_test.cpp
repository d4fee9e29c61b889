// HPCC and HPCC++ end to end: experiments of the paper (SIGCOMM 2019) that are possible with one switch. Switches add
// 12 bytes of telemetry and a header to every packet, so the payload is less than eta of the line rate.
#include "congestion_control/common_start.hpp"

namespace roci::test {
namespace {

constexpr double kEta = 0.95;

FanInOptions hpcc(const std::map<std::string, double>& values, const std::string& name = "hpcc") {
  FanInOptions options;
  options.control = with_profile(name, values, 4200ns);
  options.telemetry = all_telemetry();
  return options;
}

CommonStart sixteen(const std::string& name, const FanInOptions& options, Nanos span = 5ms) {
  return run_common_start(name, options, span, 0);
}

// The figure: with both windows the link is used and the queue drains within 100 us; per ACK the throughput oscillates
// below 75 Gb/s; per round trip the queue drains later.
TEST(Hpcc, reacts_faster_than_per_rtt_without_overreaction_of_per_ack) {
  const CommonStart both = sixteen("both", hpcc({{"w_ai", 80}, {"update", 0}}));
  const CommonStart each_ack = sixteen("each_ack", hpcc({{"w_ai", 80}, {"update", 1}}));
  const CommonStart each_rtt = sixteen("each_rtt", hpcc({{"w_ai", 80}, {"update", 2}}));
  // 15 BDPs too much at once, as in the figure.
  EXPECT_GE(both.peak, 700'000U);
  EXPECT_LE(both.peak, 900'000U);
  EXPECT_GE(both.part, kEta * 0.95);
  EXPECT_LE(both.p99, 15'000U);
  EXPECT_LE(both.drained, 110U);
  EXPECT_LE(each_ack.goodput, 75e9) << "reacts to the same queue again and again";
  EXPECT_GE(each_rtt.drained, both.drained + 20) << "waits for a round trip that the queue makes long";
  EXPECT_GE(each_rtt.part, kEta * 0.95);
}

TEST(Hpcc, larger_additive_steps_make_longer_queues) {
  std::map<int, CommonStart> by;
  for (const int step : {25, 80, 150, 300, 600})
    by[step] = sixteen("w_ai_" + std::to_string(step), hpcc({{"w_ai", step}}), kSlowMachine ? 1ms : 3ms);
  EXPECT_LE(by[150].p95, 10'000U);
  EXPECT_GT(by[300].p95, by[150].p95);
  EXPECT_GT(by[600].p95, by[300].p95);
  for (const auto& [step, of] : by) EXPECT_GE(of.part, kEta * 0.95) << step;
}

TEST(Hpcc, sampled_and_receiver_driven_forms_keep_goodput_and_short_queue) {
  const CommonStart sampled = sixteen("sampled", hpcc({{"w_ai", 80}}, "hpcc_sampled"));
  const CommonStart probes = sixteen("probes", hpcc({{"w_ai", 80}, {"probe", 1}}, "hpcc_sampled"));
  const CommonStart receiver = sixteen("receiver", hpcc({{"w_ai", 80}}, "hpcc_receiver"));
  for (const CommonStart& of : {sampled, probes, receiver}) {
    EXPECT_GE(of.part, kEta * 0.95);
    EXPECT_LE(of.p99, 30'000U);
  }
  // A few synchronized flows oscillate if they react twice to the same queue.
  FanInOptions four = hpcc({{"w_ai", 80}}, "hpcc_receiver");
  four.senders = four.flows = 4;
  const CommonStart few = sixteen("receiver_of_four", four);
  EXPECT_GE(few.part, kEta * 0.95);
  EXPECT_LE(few.p99, 30'000U);
}

// The limit is below all grants, so every window of the receiver has the same value.
TEST(Hpcc, receiver_window_returns_after_timeout_although_it_is_constant) {
  FanInOptions options = hpcc({{"w_ai", 80}}, "hpcc_receiver");
  options.senders = options.flows = 1;
  options.extensions.receive_window = 20 * 1024;
  FanIn net(options);
  net.core(0).attributes.timeout = 8;  // 1 ms
  net.drive(1ms);
  const uint64_t before = net.control(0)->published.read().window;
  EXPECT_EQ(before, 20U * 1106);
  net.link(0).set_script(SimLink::kAToB, [](const rte_mbuf&, uint64_t) {
    SimVerdict verdict;
    verdict.drop = true;
    return verdict;
  });
  net.drive(20us);
  net.until([&] { return net.total("timeouts") > 0; }, 500ms);
  EXPECT_LT(net.control(0)->published.read().window, before);
  net.link(0).set_script(SimLink::kAToB, nullptr);
  net.until(
      [&] {
        return net.core(0).flow(Direction::kRequests)->acknowledged >= net.core(0).gates->requests.sent_end;
      },
      500ms);
  net.drive(100us);
  EXPECT_EQ(net.control(0)->published.read().window, before);
  EXPECT_EQ(net.core(0).flow(Direction::kRequests)->receiver_window, 20U * 1024) << "the configured limit";
}

// A long flow, then a message of 1 MB (figure 9a and b). After the message: time until the long flow sends 97 % of
// its earlier rate, measured over ten round trips, and time until its rate is no longer limited.
struct Back {
  Nanos to_97_percent{0}, to_the_line{0};
};
Back back_after_a_short_flow(const std::string& name, FanInOptions options) {
  options.senders = 2;
  options.flows = 2;
  options.rate = 25_Gbps;
  options.delay = 1155ns;  // a round-trip time of 5.4 us
  FanIn net(options);
  net.stop(1);
  EXPECT_NEAR(static_cast<double>(net.time_of(1, 1024).count()), 5400, 150);
  uint64_t sent = 0;  // by the long flow, in bytes
  net.link(0).set_script(SimLink::kAToB, [&](const rte_mbuf& frame, uint64_t) {
    sent += frame.pkt_len;
    return SimVerdict{};
  });
  net.drive(5ms);
  const Nanos step = 10 * 5400ns;
  const auto each = [&](Nanos span) {
    sent = 0;
    net.drive(span);
    return static_cast<double>(sent) / static_cast<double>(span.count());
  };
  const double before = each(1ms);
  EXPECT_GE(before, 0.9 * 25 / 8);
  const Nanos begun = net.runner.now();
  const uint64_t end = net.acknowledged(1) + 1'000'000;
  net.post(1, 1'000'000);
  while (net.acknowledged(1) < end) net.drive(1us);
  const Nanos ended = net.runner.now();
  note(name + "_short_flow_us", static_cast<double>((ended - begun).count()) / 1e3);
  Nanos back{0}, free{0};
  while (net.runner.now() < ended + 5ms) {
    if (each(step) < 0.97 * before) back = net.runner.now() - ended;
    const roci_cc_decision now = net.control(0)->published.read();
    if (now.rate < options.rate.value()) free = net.runner.now() - ended;
  }
  note(name + "_back_after_us", static_cast<double>(back.count()) / 1e3);
  note(name + "_limited_until_us", static_cast<double>(free.count()) / 1e3);
  return {back, free};
}

TEST(Hpcc, long_flow_regains_line_rate_sooner_than_with_dcqcn) {
  FanInOptions with = hpcc({});
  with.control = with_profile("hpcc", {{"w_ai", 80}}, 5400ns);
  const Back soon = back_after_a_short_flow("hpcc", with);
  FanInOptions other;
  other.control = with_profile("dcqcn");
  other.aqm = dcqcn_aqm(25_Gbps);
  const Back late = back_after_a_short_flow("dcqcn", other);
  EXPECT_LE(soon.to_97_percent, 10 * 5400ns);
  // With the NIC's values half of the missing rate returns per 300 us: 97 % after three periods, all of it after ten.
  EXPECT_GT(late.to_97_percent, 800us);
  EXPECT_GT(late.to_the_line, 1ms);
}

}  // namespace
}  // namespace roci::test
