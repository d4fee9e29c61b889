// Experiments in real time. No result depends on the speed of the machine.
#include <gtest/gtest.h>
#include <stdlib.h>  // mkdtemp()

#include <algorithm>
#include <filesystem>

#include "lab/execution/experiment.hpp"
#include "lab/execution/realtime_throttle.hpp"
#include "lab/scenario/scenario.hpp"
#include "support/must.hpp"

namespace roci::lab {
namespace {

using test::must;

TEST(RealTime, summary_equals_virtual_time_with_simulated_links) {
  const Scenario scenario =
      must(parse_scenario("name: x\nduration: 400us\ndrain: 20ms\nsample: 20us\n"
                          "topology: {kind: leaf_spine, leaves: 2, spines: 2, hosts_per_leaf: 3, "
                          "link: {rate: 1Gbps}, fabric: {rate: 2Gbps}}\n"
                          "hosts: {congestion_control: {profile: dctcp}}\n"
                          "traffic:\n"
                          "  - {name: web, pattern: random, from: all, to: all, size: 5KB, arrivals: "
                          "poisson, load: 0.5}\n"
                          "faults: [{between: [leaf0, spine1], loss: 0.05}]\n",
                          "x.yaml"));
  const Measurements in_virtual_time = must(run_experiment(scenario, {}));
  EXPECT_GT(in_virtual_time.flows.size(), 10U);
  EXPECT_FALSE(in_virtual_time.real);
  for (const unsigned threads : {1U, 3U}) {
    ExperimentOptions options;
    options.threads = threads;
    options.real = true;
    const Measurements real = must(run_experiment(scenario, options));
    EXPECT_EQ(real.summary.dump(), in_virtual_time.summary.dump()) << threads;
    ASSERT_TRUE(real.real);
    EXPECT_TRUE(real.real->ports.empty());
    EXPECT_LE(real.real->late.p99_ns, real.real->late.most_ns);
  }
}

// Virtual time has no events for most of the run, but real time must pass.
TEST(RealTime, run_takes_at_least_its_duration) {
  const Scenario scenario =
      must(parse_scenario("name: x\nduration: 300ms\nsample: 1ms\ntopology: {kind: star, hosts: 2}\n"
                          "traffic: [{name: t, from: h0, to: h1, size: 1KB, start: 299ms}]\n",
                          "x.yaml"));
  ExperimentOptions options;
  options.real = true;
  const Measurements result = must(run_experiment(scenario, options));
  EXPECT_GE(result.seconds, 0.3);
  EXPECT_EQ(result.summary["traffic"]["t"]["ended"], 1U) << result.summary["traffic"];
}

TEST(RealTime, stopped_run_returns_canceled) {
  const Scenario scenario =
      must(parse_scenario("name: x\nduration: 1h\ntopology: {kind: star, hosts: 3}\ntraffic: [{from: h0, to: "
                          "h1, size: unlimited}]",
                          "x.yaml"));
  for (const bool real : {false, true}) {
    uint32_t asked = 0;
    ExperimentOptions options;
    options.real = real;
    options.stops = [&] { return ++asked == 50'000; };
    const auto result = run_experiment(scenario, options);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, ECANCELED) << result.error().message;
    EXPECT_EQ(asked, 50'000U);
  }
}

// A delay lasts until the runner has caught up, or until the next event.
TEST(RealtimeThrottle, reports_time_distribution_of_lateness) {
  RealtimeThrottle pace;
  pace.start(1ms);
  pace.on_round_start(1ms + 100us, 1ms + 100us);  // on time
  pace.on_round_start(1ms + 200us, 1ms + 500us);  // 300 us late, for 100 us
  pace.on_round_start(1ms + 300us, 1ms + 501us);  // 201 us late, until 501 us
  pace.on_round_start(1ms + 900us, 1ms + 940us);  // 40 us late
  const ScheduleLag late = pace.lateness(2ms);
  EXPECT_EQ(late.most_ns, 300'000U);
  EXPECT_DOUBLE_EQ(late.part, (100'000.0 + 201'000.0) / 1e6);
  EXPECT_DOUBLE_EQ(late.mean_ns, (300e3 * 100e3 + 201e3 * 201e3 + 40e3 * 40e3) / 1e6);
  EXPECT_NEAR(static_cast<double>(late.p99_ns), 300e3, 300e3 * 0.004);
}

TEST(RealtimeThrottle, advances_with_the_clock) {
  RealtimeThrottle pace;
  pace.start(5ms);
  const Nanos before = pace.now();
  EXPECT_GE(before, 5ms);
  while (pace.now() < 6ms) pace.rest(6ms);
  EXPECT_GE(pace.now(), 6ms);
  EXPECT_EQ(pace.lateness(6ms).part, 0);
}

// Two of five links are shared-memory ports, through which the frames pass.
class RealPorts : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = std::filesystem::temp_directory_path() / "roci-lab-XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  [[nodiscard]] std::string devices(int number) const {
    const auto device = [&](const char* role, int n) {
      return "\"net_memif" + std::to_string(n) + ",role=" + role + ",id=" + std::to_string(number) +
             ",socket=" + (folder_ / "s").string() + "\"";
    };
    return "[" + device("server", 2 * number) + ", " + device("client", 2 * number + 1) + "]";
  }
  [[nodiscard]] Scenario scenario(const std::string& payload, const std::string& more = {}) const {
    return must(parse_scenario(
        "name: x\nduration: 20ms\ndrain: 20s\nsample: 100us\npayload: " + payload +
            "\ntopology: {kind: dumbbell, left: 2, right: 2, link: {rate: 50Mbps, delay: 10us}}\n"
            "traffic:\n"
            "  - {name: there, from: h0-h1, to: h2-h3, size: 20KB}\n"
            "  - {name: back, from: h2, to: h0, size: 20KB, operation: read}\n"
            "ports:\n"
            "  - {between: [h0, s0], devices: " +
            devices(0) +
            "}\n"
            "  - {between: [s1, s0], devices: " +
            devices(1) + "}\n" + more,
        "x.yaml"));
  }

  std::filesystem::path folder_;
};

TEST_F(RealPorts, carry_traffic_of_simulated_links) {
  const Scenario on_ports = scenario("carried");
  ExperimentOptions options;
  options.real = true;
  for (int run = 0; run < 2; ++run) {  // the ports can be opened again by the next run
    const Measurements result = must(run_experiment(on_ports, options));
    EXPECT_EQ(result.summary["traffic"]["there"]["ended"], 4U);
    EXPECT_EQ(result.summary["traffic"]["back"]["ended"], 1U);
    EXPECT_EQ(result.summary["drops"]["all"], 0U) << result.summary["drops"];
    EXPECT_FALSE(result.summary.contains("first_error"));
    ASSERT_TRUE(result.real);
    const auto& ports = result.real->ports;
    ASSERT_EQ(ports.size(), 4U);
    for (size_t i = 0; i < ports.size(); ++i) {
      EXPECT_GT(ports[i].tx_packets, 20U) << ports[i].cable;
      EXPECT_EQ(ports[i].rx_packets, ports[i ^ 1U].tx_packets) << ports[i].cable;
      EXPECT_EQ(ports[i].rx_missed + ports[i].dropped, 0U) << ports[i].cable;
    }
    EXPECT_EQ(ports[0].cable, "h0 to s0");
    EXPECT_EQ(ports[0].device, "net_memif0");
  }
}

// The shared-memory link itself has no rate limit.
TEST_F(RealPorts, host_sends_no_faster_than_configured_link_rate) {
  const Scenario narrow = must(parse_scenario(
      "name: x\nduration: 20ms\ndrain: 20s\nsample: 100us\npayload: carried\n"
      "topology: {kind: graph, hosts: [a, b], switches: [s], link: {rate: 1Gbps, delay: 10us}, "
      "links: [{between: [a, s], rate: 20Mbps}, {between: [b, s]}]}\n"
      "traffic: [{name: t, from: a, to: b, size: 20KB}]\nports: [{between: [a, s], devices: " +
          devices(0) + "}]\n",
      "x.yaml"));
  ExperimentOptions options;
  options.real = true;
  const Measurements result = must(run_experiment(narrow, options));
  ASSERT_NE(result.flows[0].end, kNever);
  EXPECT_FALSE(result.flows[0].failed);
  EXPECT_GE(result.flows[0].end, 8ms - 500us) << "but for the last packet, which nobody waits for";
}

TEST_F(RealPorts, have_no_effect_in_virtual_time) {
  Scenario on_ports = scenario("absent");
  const std::string summary = must(run_experiment(on_ports, {})).summary.dump();
  on_ports.ports.clear();
  EXPECT_EQ(summary, must(run_experiment(on_ports, {})).summary.dump());
}

TEST_F(RealPorts, reject_absent_payload_and_link_faults) {
  ExperimentOptions options;
  options.real = true;
  const Scenario absent = scenario("absent");
  const auto header_only = run_experiment(absent, options);
  ASSERT_FALSE(header_only);
  EXPECT_EQ(header_only.error().message,
            "x.yaml:11: ports[0].devices: packets without payload cannot be sent through real ports; --real "
            "requires payload: carried");
  const Scenario faulty = scenario("carried", "faults: [{between: [s0, s1], loss: 0.1}]\n");
  const auto with_faults = run_experiment(faulty, options);
  ASSERT_FALSE(with_faults);
  EXPECT_EQ(
      with_faults.error().message,
      "x.yaml:12: ports[1].devices: the link has faults; with --real only simulated links can have faults");
  const Scenario elsewhere = scenario("carried", "faults: [{between: [h3, s1], loss: 0.1}]\n");
  EXPECT_TRUE(check_real(elsewhere));
}

TEST_F(RealPorts, open_error_names_line_in_scenario) {
  Scenario nowhere = scenario("carried");
  std::ranges::fill(nowhere.ports[1].devices, "net_af_packet0,iface=nowhere");
  ExperimentOptions options;
  options.real = true;
  const auto result = run_experiment(nowhere, options);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message.substr(0, 86),
            "x.yaml:12: ports[1].devices: net_af_packet0: network interface \"nowhere\" does not exis");
}

}  // namespace
}  // namespace roci::lab
