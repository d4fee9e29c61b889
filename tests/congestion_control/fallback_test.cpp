// Profiles with unmet requirements: the fallback runs, READ responses run without congestion control, or the queue pair
// is refused.
#include "congestion_control/settings.hpp"

namespace roci::test {
namespace {

FanInOptions single(const CongestionProfile& profile) {
  FanInOptions options;
  options.senders = options.flows = 1;
  options.control.profiles["it"] = profile;
  options.control.profile = "it";
  return options;
}

// The plugin rejects its values for this flow; the capabilities of the peer are sufficient.
TEST(Fallback, runs_if_parameter_values_require_base_rtt) {
  FanIn net(single({"ldcp", {}, 0ns, "dcqcn"}));
  net.drive(100us);
  ASSERT_EQ(net.core(0).state(), IBV_QPS_RTS);
  ASSERT_NE(net.control(0), nullptr);
  EXPECT_STREQ(net.control(0)->profile.plugin->name, "dcqcn");
  EXPECT_GE(net.measure(1ms).sum, 0.95 * net.most_goodput());
}

TEST(Fallback, none_runs_without_congestion_control_if_parameter_values_require_base_rtt) {
  FanIn net(single({"static_window", {}, 0ns, "none"}));
  net.drive(100us);
  ASSERT_EQ(net.core(0).state(), IBV_QPS_RTS);
  EXPECT_EQ(net.control(0), nullptr);
}

// Without time stamps READ responses have no round-trip samples. Requests have them.
TEST(Fallback, read_responses_are_sent_without_congestion_control_if_values_are_rejected) {
  FanInOptions options = single({"ldcp", {{"initial_window", 32}}, 0ns, ""});
  options.reads = true;
  FanIn net(options);
  net.drive(200us);
  ASSERT_EQ(net.core(0).state(), IBV_QPS_RTS);
  EXPECT_EQ(net.control(0, ROCI_CC_RESPONSES), nullptr);
  EXPECT_GE(net.measure(1ms).sum, 0.95 * net.most_goodput());
}

TEST(Fallback, change_to_profile_whose_values_are_rejected_keeps_running_flow) {
  FanInOptions options = single({"static_rate", {{"rate", 7e9}}, 0ns, ""});
  options.extensions.mode = ExtensionMode::kOff;
  options.control.profiles["careful"] = {"dctcp", {}, 0ns, "unlimited"};
  options.control.profiles["unlimited"] = {"static_window", {}, 0ns, ""};
  FanIn net(options);
  net.drive(100us);
  const ControlFlow* const before = net.control(0);
  const Status refused = net.queue_pair(0).set_congestion_control("careful");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "queue pair: unlimited: window: 0 requires base_rtt");
  net.drive(100us);
  EXPECT_EQ(net.core(0).state(), IBV_QPS_RTS);
  EXPECT_EQ(net.control(0), before);
}

}  // namespace
}  // namespace roci::test
