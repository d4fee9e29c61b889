// PowerTCP (NSDI 2022) end to end.
#include "congestion_control/common_start.hpp"

namespace roci::test {
namespace {

constexpr Nanos kPowerSpan = kSlowMachine ? 1ms : 5ms;

TEST(PowerTcpFanIn, powertcp_drains_first_queue_and_uses_the_whole_line) {
  FanInOptions options;
  options.control = with_profile("powertcp", {}, 4200ns);
  options.telemetry = all_telemetry();
  const CommonStart of = run_common_start("powertcp", options, kPowerSpan, 32);
  EXPECT_GE(of.part, 0.98);
  EXPECT_LE(of.drained_from_peak, 110U);
  EXPECT_LE(of.p99, 30'000U) << "beta of 16 flows is 8.4 KB";
}

TEST(PowerTcpFanIn, theta_powertcp_needs_no_support_by_the_switch) {
  FanInOptions options;
  options.control = with_profile("theta_powertcp", {}, 4200ns);
  options.extensions.timestamps = true;
  const CommonStart of = run_common_start("theta", options, kPowerSpan, 0);
  EXPECT_GE(of.part, 0.97);
  EXPECT_LE(of.drained_from_peak, 150U);
  EXPECT_LE(of.p99, 40'000U);
}

}  // namespace
}  // namespace roci::test
