// Algorithms on a control core have similar results as in the worker, with a small delay.
#include "congestion_control/settings.hpp"

namespace roci::test {
namespace {

struct Result {
  FanIn::Rates rates;
  double part = 0;
  uint64_t p99 = 0, drops = 0;
};
Result run(FanInOptions options, uint32_t cores, Nanos warm) {
  options.control.cores = cores;
  FanIn net(options);
  net.drive(warm);
  net.take_queue();
  const uint64_t before = net.port_counters().dropped();
  Result result;
  result.rates = net.measure(kSlowMachine ? 2ms : 10ms);
  const auto queue = net.take_queue();
  note(result.rates, queue, cores == 0 ? "worker_" : "core_");
  result.part = result.rates.sum / net.most_goodput();
  result.p99 = FanIn::percentile(queue, 0.99);
  result.drops = net.port_counters().dropped() - before;
  return result;
}

TEST(ControlCores, ldcp_meets_same_limits_with_control_core) {
  for (const uint32_t cores : {0U, 1U}) {
    SCOPED_TRACE(cores);
    FanInOptions options;
    options.control = with_profile("ldcp");
    options.aqm = ldcp_aqm();
    const Result result = run(options, cores, 1ms);
    EXPECT_GE(result.part, 0.99);
    EXPECT_GE(result.rates.jain, 0.97);
    EXPECT_LE(result.p99, 25'000U);
    EXPECT_EQ(result.drops, 0U);
  }
}

TEST(ControlCores, hpcc_meets_same_limits_with_control_core) {
  for (const uint32_t cores : {0U, 1U}) {
    SCOPED_TRACE(cores);
    FanInOptions options;
    options.control = with_profile("hpcc", {{"w_ai", 80}}, 4200ns);
    options.telemetry = all_telemetry();
    const Result result = run(options, cores, 2ms);
    EXPECT_GE(result.part, 0.95 * 0.95);
    EXPECT_GE(result.rates.jain, 0.99);
    EXPECT_LE(result.p99, 15'000U);
  }
}

TEST(ControlCores, dcqcn_meets_same_limits_with_control_core) {
  double part[2];
  for (const uint32_t cores : {0U, 1U}) {
    SCOPED_TRACE(cores);
    FanInOptions options;
    options.control = with_profile("dcqcn");
    options.aqm = dcqcn_aqm(options.rate);
    const Result result = run(options, cores, 8ms);
    part[cores] = result.part;
    EXPECT_GE(result.part, 0.75);
    EXPECT_GE(result.rates.jain, 0.95);
    EXPECT_LE(result.p99, 10'000'000U);
    EXPECT_EQ(result.drops, 0U);
  }
  EXPECT_NEAR(part[0], part[1], 0.1);
}

}  // namespace
}  // namespace roci::test
