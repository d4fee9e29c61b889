// PowerTCP (NSDI 2022) end to end: 16 senders to one receiver at 100 Gb/s with a round-trip time of 4.2 us, which start
// together, so that the first queue is 15 bandwidth-delay products.
#include "congestion_control/settings.hpp"

namespace roci::test {
namespace {

struct PowerResult {
  double part = 0;  // of the maximum payload rate
  double jain = 0;
  size_t drained = 0;  // us from the longest queue until it was below one bandwidth-delay product
  uint64_t p99 = 0;    // bytes
};
PowerResult run_sixteen_power_flows(const FanInOptions& options, uint32_t telemetry_bytes) {
  FanIn net(options);
  net.take_queue();
  net.drive(500us);
  const auto first = net.take_queue();
  net.drive(1500us);
  net.take_queue();
  const auto rates = net.measure(kSlowMachine ? 1ms : 5ms);
  const auto queue = net.take_queue();
  note(rates, queue);
  PowerResult of;
  of.part = rates.sum / net.most_goodput(telemetry_bytes);
  of.jain = rates.jain;
  const auto peak = std::ranges::max_element(first);
  of.drained =
      static_cast<size_t>(std::find_if(peak, first.end(), [](uint64_t q) { return q < 52'000; }) - peak);
  of.p99 = FanIn::percentile(queue, 0.99);
  note("part", of.part), note("drained_us", of.drained), note("p99", of.p99);
  EXPECT_EQ(net.port_counters().dropped(), 0U);
  EXPECT_EQ(net.total("timeouts"), 0U);
  return of;
}

TEST(PowerTcpFanIn, powertcp_drains_first_queue_and_uses_the_whole_line) {
  FanInOptions options;
  options.control = with_profile("powertcp", {}, 4200ns);
  options.telemetry = all_telemetry();
  const PowerResult of = run_sixteen_power_flows(options, 32);
  EXPECT_GE(of.part, 0.98);
  EXPECT_GE(of.jain, 0.95);
  EXPECT_LE(of.drained, 110U);
  EXPECT_LE(of.p99, 30'000U) << "beta of 16 flows is 8.4 KB";
}

TEST(PowerTcpFanIn, theta_powertcp_needs_no_support_by_the_switch) {
  FanInOptions options;
  options.control = with_profile("theta_powertcp", {}, 4200ns);
  options.extensions.timestamps = true;
  const PowerResult of = run_sixteen_power_flows(options, 0);
  EXPECT_GE(of.part, 0.97);
  EXPECT_GE(of.jain, 0.95);
  EXPECT_LE(of.drained, 150U);
  EXPECT_LE(of.p99, 40'000U);
}

}  // namespace
}  // namespace roci::test
