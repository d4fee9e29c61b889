// Changes of congestion control while a flow runs.
#include "congestion_control/settings.hpp"

namespace roci::test {
namespace {

double gbps(FanIn& net, Nanos span = 2ms) { return net.measure(span).sum / 1e9; }
constexpr double kPayload = 1024.0 / 1106;

FanInOptions two_rates(uint32_t cores) {
  FanInOptions options;
  options.senders = options.flows = 1;
  options.extensions.mode = ExtensionMode::kOff;
  options.control = with_profile("static_rate", {{"rate", 7e9}});
  options.control.profiles["slower"] = {"static_rate", {{"rate", 3e9}}, 0ns, ""};
  options.control.profiles["careful"] = {"dctcp", {}, 5us, "slower"};
  options.control.base_rtt = 5us;
  options.control.cores = cores;
  return options;
}

TEST(AlgorithmChange, running_flow_switches_profiles_and_algorithms) {
  for (const uint32_t cores : {0U, 1U}) {
    SCOPED_TRACE(cores);
    FanIn net(two_rates(cores));
    QueuePair& qp = net.queue_pair(0);
    net.drive(100us);
    EXPECT_NEAR(gbps(net), 7 * kPayload, 0.02);
    ASSERT_TRUE(qp.set_congestion_control("slower"));
    EXPECT_EQ(qp.congestion_control(), "slower");
    net.drive(100us);
    EXPECT_NEAR(gbps(net), 3 * kPayload, 0.02);
    ASSERT_TRUE(qp.set_congestion_control("none"));
    net.drive(100us);
    EXPECT_GE(gbps(net), 0.99 * net.most_goodput() / 1e9);
    ASSERT_TRUE(qp.set_congestion_control("dcqcn"));
    net.drive(100us);
    EXPECT_GE(gbps(net), 0.99 * net.most_goodput() / 1e9) << "from the rate of the line on";
    EXPECT_STREQ(net.control(0)->profile.plugin->name, "dcqcn");
    ASSERT_TRUE(qp.set_congestion_control("it"));
    net.drive(100us);
    EXPECT_NEAR(gbps(net), 7 * kPayload, 0.02);
    EXPECT_EQ(net.total("timeouts"), 0U);
    EXPECT_EQ(net.port_counters().dropped(), 0U);
  }
}

TEST(AlgorithmChange, unsupported_profile_is_rejected_and_flow_keeps_its_own) {
  FanIn net(two_rates(0));
  QueuePair& qp = net.queue_pair(0);
  net.drive(100us);
  const ControlFlow* const before = net.control(0);
  const Status refused = qp.set_congestion_control("dctcp");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message,
            "queue pair: dctcp requires CE mark counts, which the peer does not provide");
  EXPECT_FALSE(qp.set_congestion_control("reno"));
  EXPECT_EQ(qp.congestion_control(), "it");
  EXPECT_EQ(net.control(0), before);
  EXPECT_NEAR(gbps(net), 7 * kPayload, 0.02);
  ASSERT_TRUE(qp.set_congestion_control("careful")) << "which has a fallback";
  net.drive(100us);
  EXPECT_NEAR(gbps(net), 3 * kPayload, 0.02);
}

TEST(AlgorithmChange, flow_connected_without_control_rejects_a_profile) {
  FanInOptions options = two_rates(0);
  options.control.profile = "none";
  FanIn net(options);
  net.drive(100us);
  EXPECT_TRUE(net.queue_pair(0).set_congestion_control("none"));
  const Status refused = net.queue_pair(0).set_congestion_control("slower");
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("reconnect to enable it"), std::string::npos)
      << refused.error().message;
}

// The host requests the peer's capabilities when the queue pair is connected, and adopts them when it has data to
// send.
TEST(AlgorithmChange, idle_flow_gets_control_with_first_data) {
  FanInOptions options;
  options.senders = options.flows = 1;
  options.control = with_profile("ldcp");
  FanIn net(options);
  const Qpn number{net.queue_pair(0).qp_num()};
  Worker& worker = net.hosts[0]->device->host().worker_of(number);
  for (int seconds = 0; seconds < 3; ++seconds) {
    net.run(1s);
    worker.ring(*worker.find(number));  // served without work
    net.run(1ms);
    ASSERT_EQ(net.core(0).state(), IBV_QPS_RTS) << "refused";
  }
  EXPECT_EQ(net.control(0), nullptr);
  EXPECT_LT(net.time_of(0, 1 << 20), 10ms);
  EXPECT_STREQ(net.control(0)->profile.plugin->name, "ldcp");
}

// The receiver part of an algorithm is created and removed with it, and ignores data from before.
TEST(AlgorithmChange, receiver_part_is_created_and_removed_with_algorithm) {
  FanInOptions options;
  options.senders = options.flows = 4;
  options.control = with_profile("hpcc", {{"w_ai", 80}}, 4200ns);
  options.control.profiles["by_receiver"] = {"hpcc_receiver", {{"w_ai", 80}}, 4200ns, ""};
  options.telemetry = all_telemetry();
  FanIn net(options);
  net.drive(1ms);
  for (int round = 0; round < 2; ++round) {
    for (const char* name : {"by_receiver", "it"}) {
      SCOPED_TRACE(name);
      for (size_t flow = 0; flow < 4; ++flow) {
        ASSERT_TRUE(net.peer(flow).set_congestion_control(name));
        ASSERT_TRUE(net.queue_pair(flow).set_congestion_control(name));
      }
      net.drive(1ms);
      const auto rates = net.measure(1ms);
      EXPECT_GE(rates.sum, 0.9 * net.most_goodput());
      EXPECT_GE(rates.jain, 0.9);
    }
  }
  // The last grants, a quarter of the line each, do not limit the flows any more.
  for (size_t flow = 1; flow < 4; ++flow) net.stop(flow);
  net.drive(1ms);
  EXPECT_GE(net.measure(1ms).sum, 0.9 * net.most_goodput());
}

// The algorithm limits telemetry to packets that it requests.
TEST(AlgorithmChange, telemetry_starts_as_configured_after_sampled_algorithm) {
  FanInOptions options;
  options.senders = options.flows = 1;
  options.control = with_profile("hpcc_sampled", {}, 4200ns);
  options.telemetry = all_telemetry();
  FanIn net(options);
  net.drive(100us);
  EXPECT_TRUE(net.core(0).gates->requests.telemetry_only_requested);
  ASSERT_TRUE(net.queue_pair(0).set_congestion_control("none"));
  net.drive(100us);
  EXPECT_FALSE(net.core(0).gates->requests.telemetry_only_requested);
  EXPECT_FALSE(net.core(0).gates->requests.telemetry_next);
}

}  // namespace
}  // namespace roci::test
