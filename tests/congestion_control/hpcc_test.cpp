// HPCC and HPCC++ from end to end: the experiments of the paper (SIGCOMM 2019) that fit on one switch. Switches write
// telemetry of 12 bytes and a header into every packet, so that even eta of the line is less payload than headers leave.
#include "congestion_control/settings.hpp"

namespace roci::test {
namespace {

constexpr double kEta = 0.95;

FanInOptions hpcc(const std::map<std::string, double>& values, const std::string& name = "hpcc") {
  FanInOptions options;
  options.control = with_profile(name, values, 4200ns);
  options.telemetry = all_telemetry();
  return options;
}

// 16 to 1 from the same moment on (figure 13).
struct Sixteen {
  double part = 0;        // of the payload that headers leave
  uint64_t peak = 0;      // bytes
  size_t drained = 0;     // us, when the queue first was below a BDP
  size_t settled = 0;     // us, after which it was below 15 KB for 20 us
  uint64_t p95 = 0, p99 = 0;
};
Sixteen sixteen(const std::string& name, const FanInOptions& options, Nanos span = kSlowMachine ? 2ms : 5ms) {
  FanIn net(options);
  net.take_queue();
  net.drive(500us);
  const auto first = net.take_queue();
  net.drive(1500us);
  net.take_queue();
  const auto rates = net.measure(span);
  const auto queue = net.take_queue();
  note(rates, queue, name + "_");
  Sixteen of;
  of.part = rates.sum / net.most_goodput();
  of.peak = FanIn::percentile(first, 1);
  const auto peak = std::ranges::max_element(first);
  of.drained = static_cast<size_t>(std::find_if(peak, first.end(), [](uint64_t q) { return q < 52'000; }) - first.begin());
  for (size_t i = 0, low = 0; i < first.size() && low < 20; ++i) {
    low = first[i] < 15'000 && i > 20 ? low + 1 : 0;
    of.settled = i;
  }
  of.p95 = FanIn::percentile(queue, 0.95);
  of.p99 = FanIn::percentile(queue, 0.99);
  note(name + "_part", of.part), note(name + "_peak", of.peak), note(name + "_drained", of.drained), note(name + "_settled", of.settled);
  note(name + "_p95", of.p95);
  EXPECT_GE(rates.jain, 0.95) << name;
  EXPECT_EQ(net.port_counters().dropped(), 0U) << name;
  EXPECT_EQ(net.total("timeouts"), 0U) << name;
  return of;
}

TEST(Hpcc, reacts_fast_and_not_too_much_where_each_part_of_it_alone_does_not) {
  const Sixteen both = sixteen("both", hpcc({{"w_ai", 80}, {"update", 0}}));
  const Sixteen each_ack = sixteen("each_ack", hpcc({{"w_ai", 80}, {"update", 1}}));
  const Sixteen each_rtt = sixteen("each_rtt", hpcc({{"w_ai", 80}, {"update", 2}}));
  // 15 BDPs too much at once, as in the paper's figure.
  EXPECT_GE(both.peak, 700'000U);
  EXPECT_LE(both.peak, 900'000U);
  EXPECT_GE(both.part, kEta * 0.95);
  EXPECT_LE(both.p99, 15'000U);
  EXPECT_LE(both.drained, 110U);
  EXPECT_LE(each_ack.part, 0.8 * both.part) << "reacts to the same queue again and again";
  EXPECT_GE(each_rtt.drained, both.drained + 20) << "waits for a round trip that the queue makes long";
  EXPECT_GE(each_rtt.part, kEta * 0.95);
}

TEST(Hpcc, larger_additive_steps_make_longer_queues) {
  std::map<int, Sixteen> by;
  for (const int step : {25, 80, 150, 300, 600})
    by[step] = sixteen("w_ai_" + std::to_string(step), hpcc({{"w_ai", step}}), kSlowMachine ? 1ms : 3ms);
  EXPECT_LE(by[150].p95, 10'000U);
  EXPECT_GT(by[300].p95, by[150].p95);
  EXPECT_GT(by[600].p95, by[300].p95);
  for (const auto& [step, of] : by) EXPECT_GE(of.part, kEta * 0.95) << step;
}

TEST(Hpcc, sampled_and_receiver_driven_forms_do_as_well) {
  const Sixteen sampled = sixteen("sampled", hpcc({{"w_ai", 80}}, "hpcc_sampled"));
  const Sixteen probes = sixteen("probes", hpcc({{"w_ai", 80}, {"probe", 1}}, "hpcc_sampled"));
  const Sixteen receiver = sixteen("receiver", hpcc({{"w_ai", 80}}, "hpcc_receiver"));
  for (const Sixteen& of : {sampled, probes, receiver}) {
    EXPECT_GE(of.part, kEta * 0.95);
    EXPECT_LE(of.p99, 30'000U);
  }
}

// A flow has the line, then a message of 1 MB comes (figure 9a and b). How long after its end the flow has 90 % of what it
// had before, by what arrives in two round trips.
Nanos back_after_a_short_flow(FanInOptions options) {
  options.senders = 2;
  options.flows = 2;
  options.rate = 25_Gbps;
  options.delay = 1155ns;  // a round trip of 5.4 us
  FanIn net(options);
  net.stop(1);
  EXPECT_NEAR(static_cast<double>(net.time_of(1, 1024).count()), 5400, 150);
  net.drive(5ms);
  const Nanos step = 5400ns;
  const double before = net.measure(1ms).sum;
  EXPECT_GE(before, 0.9 * net.most_goodput());
  const uint64_t short_end = net.acknowledged(1) + 1'000'000;
  net.post(1, 1'000'000);
  while (net.acknowledged(1) < short_end) net.drive(1us);
  note("short_flow_us", 0);
  const Nanos ended = net.runner.now();
  uint64_t last = net.acknowledged(0);
  for (int i = 0; i < 4000; ++i) {
    net.drive(2 * step);
    const uint64_t now = net.acknowledged(0);
    if (static_cast<double>(now - last) * 8e9 >= 0.9 * before * static_cast<double>((2 * step).count())) break;
    last = now;
  }
  return net.runner.now() - ended;
}

TEST(Hpcc, a_long_flow_has_the_line_again_at_once_after_a_short_one) {
  FanInOptions with = hpcc({});
  with.control = with_profile("hpcc", {{"w_ai", 80}}, 5400ns);
  const Nanos soon = back_after_a_short_flow(with);
  FanInOptions other;
  other.control = with_profile("dcqcn");
  other.aqm = dcqcn_aqm(25_Gbps);
  const Nanos late = back_after_a_short_flow(other);
  note("hpcc_us", static_cast<double>(soon.count()) / 1e3), note("dcqcn_us", static_cast<double>(late.count()) / 1e3);
  EXPECT_LE(soon, 54us);
  EXPECT_GT(late, 1ms);
}

}  // namespace
}  // namespace roci::test
