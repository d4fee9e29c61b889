// Small complete experiments.
#include "lab/execution/experiment.hpp"

#include <gtest/gtest.h>

#include <array>

#include "lab/scenario/scenario.hpp"
#include "support/must.hpp"

namespace roci::lab {
namespace {

using test::must;

struct Setting {
  std::string topology = "{kind: star, hosts: 5, link: {rate: 100Gbps, delay: 1us}}";
  std::string hosts = "{congestion_control: {profile: dctcp}}";
  std::string switches = "{classes: [{class: 0, mark: {kmin: 50KB, kmax: 50KB, pmax: 1}}]}";
  std::string traffic = "[{name: t, from: others, to: h4, size: 100KB}]";
  std::string more{};
  std::string duration = "200us";
};

Scenario scenario_of(const Setting& of) {
  return must(parse_scenario("name: x\nduration: " + of.duration +
                                 "\ndrain: 500ms\ntopology: " + of.topology + "\nhosts: " + of.hosts +
                                 "\nswitches: " + of.switches + "\ntraffic: " + of.traffic + "\n" + of.more,
                             "x.yaml"));
}
Measurements measure(const Setting& of, unsigned threads = 1) {
  ExperimentOptions options;
  options.threads = threads;
  return must(run_experiment(scenario_of(of), options));
}
uint64_t counted(const Measurements& of, const char* group, const char* name) {
  return of.summary[group].value(name, uint64_t{0});
}

TEST(Experiment, flows_complete_no_faster_than_ideal) {
  const Measurements result = measure({});
  ASSERT_EQ(result.flows.size(), 4U);
  for (size_t i = 0; i < result.flows.size(); ++i) {
    ASSERT_NE(result.flows[i].end, kNever);
    EXPECT_FALSE(result.flows[i].failed);
    EXPECT_GE(static_cast<double>(result.flows[i].end.count()), result.ideal[i]);
  }
}

// A single flow takes exactly the time of the network.
TEST(Experiment, single_flow_completes_in_ideal_time) {
  for (const char* operation : {"write", "read", "send"}) {
    for (const char* size : {"64B", "1KB", "20KB"}) {
      const Measurements result = measure(
          {.hosts = "{}",
           .traffic = "[{from: h0, to: h1, size: " + std::string(size) + ", operation: " + operation + "}]"});
      ASSERT_NE(result.flows[0].end, kNever) << operation << " " << size;
      EXPECT_NEAR(static_cast<double>(result.flows[0].end.count()) / result.ideal[0], 1, 0.03)
          << operation << " " << size;
    }
  }
}

// Switches know the next hops: no packet waits for address resolution.
TEST(Experiment, first_flow_over_routed_path_completes_in_ideal_time) {
  const Measurements result = measure(
      {.topology =
           "{kind: fat_tree, k: 4, link: {rate: 25Gbps, delay: 1us}, fabric: {rate: 100Gbps, delay: 1us}}",
       .hosts = "{}",
       .traffic = "[{from: h0, to: h15, size: 1KB}, {from: h5, to: h10, start: 50us, size: 1KB}]"});
  ASSERT_EQ(result.flows.size(), 2U);
  const std::array<Nanos, 2> starts{0us, 50us};
  for (size_t i = 0; i < 2; ++i) {
    ASSERT_NE(result.flows[i].end, kNever);
    const auto took = static_cast<double>((result.flows[i].end - starts[i]).count());
    EXPECT_NEAR(took / result.ideal[i], 1, 0.03) << "flow " << i;
  }
}

// Results depend on the seed, but not on the number of threads.
TEST(Experiment, result_is_independent_of_thread_count) {
  const Setting web{
      .topology =
          "{kind: leaf_spine, leaves: 2, spines: 2, hosts_per_leaf: 4, link: {rate: 25Gbps}, "
          "fabric: {rate: 50Gbps, delay: 1us}}",
      .traffic = "[{pattern: random, from: all, to: all, size: 30KB, arrivals: poisson, load: 0.6}]",
      .more = "faults: [{between: [leaf0, spine1], loss: 0.001}]"};
  const std::string one = measure(web, 1).summary.dump();
  EXPECT_EQ(one, measure(web, 1).summary.dump());
  EXPECT_EQ(one, measure(web, 2).summary.dump());
  EXPECT_EQ(one, measure(web, 5).summary.dump());
  Setting other = web;
  other.more += "\nseed: 2";
  EXPECT_NE(one, measure(other, 1).summary.dump());
}

// Each window counts its own events. The sum of all windows is the total.
TEST(Experiment, window_counts_add_up_to_total) {
  const Measurements result =
      measure({.traffic = "[{name: t, from: others, to: h4, size: unlimited, start: 100us}]",
               .more = "windows: [{name: before, until: 100us}, {name: after, from: 100us}]"});
  const auto& whole = result.summary;
  const auto& before = whole["windows"]["before"];
  const auto& after = whole["windows"]["after"];
  EXPECT_EQ(before["traffic"]["t"]["goodput_bps"], 0);
  EXPECT_EQ(before["queues_bytes"]["all_ports"]["most"], 0);
  EXPECT_GT(after["traffic"]["t"]["goodput_bps"], 80e9);
  EXPECT_NEAR(after["traffic"]["t"]["goodput_bps"].get<double>() / 2,
              whole["traffic"]["t"]["goodput_bps"].get<double>(), 1e6);
  EXPECT_EQ(after["queues_bytes"]["s0/h4"]["most"], whole["queues_bytes"]["s0/h4"]["most"]);
  EXPECT_GT(after["switches"]["marked"], 0U);
  for (const char* name : {"marked", "tx_packets"})
    EXPECT_EQ(before["switches"][name].get<uint64_t>() + after["switches"][name].get<uint64_t>(),
              whole["switches"][name].get<uint64_t>());
  // A packet and its acknowledgment take 4.19 us on idle links, and longer with a queue.
  EXPECT_GE(after["traffic"]["t"]["rtt_ns"]["p50"], 4190);
  EXPECT_LT(after["traffic"]["t"]["rtt_ns"]["most"], 100'000);
}

// Absent payload takes the same time as present payload.
TEST(Experiment, absent_payload_gives_same_result) {
  Setting setting{
      .traffic =
          "[{name: w, pattern: fan_in, from: h0-h2, to: h4, size: 33333B}, {name: r, from: h3, to: h0, "
          "size: 5KB, operation: read}, {name: s, from: h1, to: h2, size: 5KB, operation: send}]",
      .more = "faults: [{between: [h4, s0], loss: 0.01}]\npayload: absent"};
  const std::string absent = measure(setting).summary.dump();
  setting.more = "faults: [{between: [h4, s0], loss: 0.01}]\npayload: carried";
  EXPECT_EQ(absent, measure(setting).summary.dump());
}

TEST(Experiment, every_topology_carries_traffic) {
  for (const char* topology :
       {"{kind: dumbbell, left: 3, right: 2, link: {rate: 25Gbps}, trunk: {rate: 25Gbps, delay: 2us}}",
        "{kind: leaf_spine, leaves: 3, spines: 2, hosts_per_leaf: 2, link: {rate: 25Gbps}}",
        "{kind: fat_tree, k: 4, link: {rate: 25Gbps}}",
        "{kind: graph, hosts: [a, b, c], switches: [s, t, u], link: {rate: 25Gbps}, links: [{between: [a, "
        "s]}, "
        "{between: [b, t]}, {between: [c, u]}, {between: [s, t]}, {between: [t, u], delay: 5us}]}"}) {
    const Measurements result = measure(
        {.topology = topology, .traffic = "[{name: t, pattern: all_to_all, from: all, to: all, size: 4KB}]"},
        2);
    EXPECT_EQ(result.summary["traffic"]["t"]["ended"], result.flows.size()) << topology;
    EXPECT_GE(result.flows.size(), 6U);
    EXPECT_EQ(result.summary["drops"]["all"], 0U) << topology << result.summary["drops"];
  }
}

// The completion queue grows with the number of streams: all completions are pending at the first poll.
TEST(Experiment, completion_queue_holds_messages_of_all_streams) {
  const Measurements result = measure(
      {.hosts = "{}",
       .traffic =
           "[{name: t, pattern: pairs, from: h0, to: h1, arrivals: closed_loop, depth: 256, size: 64B}, "
           "{name: u, pattern: pairs, from: h0, to: h2, arrivals: closed_loop, depth: 256, size: 64B, "
           "operation: send}]"});
  EXPECT_FALSE(result.summary.contains("first_error")) << result.summary["first_error"];
  EXPECT_GT(result.summary["traffic"]["t"]["messages"], 512U);
  EXPECT_GT(result.summary["traffic"]["u"]["messages"], 512U);
}

// A percentile of no values has no value: a claim about it fails.
TEST(Experiment, summary_has_no_percentiles_of_flows_that_have_not_ended) {
  const Measurements result = must(run_experiment(
      must(parse_scenario("name: x\nduration: 20us\ntopology: {kind: star, hosts: 3, link: {rate: 100Gbps}}\n"
                          "traffic: [{name: t, from: others, to: h2, size: 1MB}]",
                          "x.yaml")),
      {}));
  const auto& traffic = result.summary["traffic"]["t"];
  EXPECT_EQ(traffic["ended"], 0U);
  EXPECT_EQ(traffic["completion_ns"].dump(), R"({"count":0})");
  EXPECT_EQ(traffic["slowdown"]["all"].dump(), R"({"count":0})");
}

// The data of READs flows from the sender to the receiver, as with WRITE.
TEST(Experiment, closed_loop_of_reads_has_the_direction_of_writes) {
  const auto queue_of_receiver = [](const std::string& operation) {
    const Measurements result = measure(
        {.hosts = "{}",
         .traffic =
             "[{name: t, from: others, to: h4, arrivals: closed_loop, depth: 4, size: 64KB, operation: " +
             operation + "}]"});
    EXPECT_FALSE(result.summary.contains("first_error"));
    return result.summary["queues_bytes"]["s0/h4"]["most"].get<uint64_t>();
  };
  EXPECT_GT(queue_of_receiver("write"), 100'000U);
  EXPECT_GT(queue_of_receiver("read"), 100'000U);
}

TEST(Experiment, overlapping_faults_of_a_link_end_independently) {
  const Measurements result =
      measure({.topology = "{kind: dumbbell, left: 1, right: 1, link: {rate: 25Gbps}}",
               .switches = "{}",
               .traffic = "[{name: t, from: h0, to: h1, size: unlimited, congestion_control: dctcp}]",
               .more = "faults: [{between: [s0, s1], marking: 0.2}, "
                       "{between: [s0, s1], down: true, from: 5us, until: 10us}]\n"
                       "windows: [{name: late, from: 100us}]",
               .duration = "100ms"});
  EXPECT_GT(result.summary["windows"]["late"]["hosts"].value("np_cnp_sent", uint64_t{0}), 10U);
}

TEST(Experiment, flows_complete_despite_loss_and_link_down) {
  Setting lossy{.topology = "{kind: dumbbell, left: 2, right: 2, link: {rate: 25Gbps}}",
                .traffic = "[{name: t, pattern: pairs, from: h0-h1, to: h2-h3, size: 100KB}]",
                .more = "faults: [{between: [s0, s1], loss: 0.01}]"};
  const Measurements lost = measure(lossy);
  EXPECT_EQ(lost.summary["traffic"]["t"]["ended"], 2U);
  EXPECT_GT(counted(lost, "hosts", "packets_retransmitted"), 0U);
  lossy.more = "faults: [{between: [s0, s1], down: true, from: 5us, until: 30us}]";
  const Measurements down = measure(lossy);
  EXPECT_EQ(down.summary["traffic"]["t"]["ended"], 2U) << "after a time-out";
  EXPECT_GT(down.flows[0].end, 30us);
}

// A host whose line is full of its own data still sends congestion notifications.
TEST(Experiment, busy_host_sends_cnps) {
  const Measurements result = measure(
      {.topology = "{kind: dumbbell, left: 1, right: 1, link: {rate: 25Gbps}}",
       .hosts = "{packets_per_turn: 0}",
       .switches = "{}",
       .traffic = "[{name: marked, from: h0, to: h1, flows: 4, size: unlimited, congestion_control: dctcp}, "
                  "{name: busy, from: h1, to: h0, flows: 4, size: unlimited}]",
       .more = "faults: [{between: [s0, s1], marking: 0.2}]"});
  EXPECT_GT(result.summary["traffic"]["busy"]["goodput_bps"].get<double>(), 20e9);
  EXPECT_GT(counted(result, "hosts", "np_cnp_sent"), 10U);
  EXPECT_EQ(counted(result, "hosts", "np_cnp_not_sent"), 0U);
}

TEST(Experiment, closed_loop_keeps_its_messages_in_flight) {
  for (const char* operation : {"write", "send"}) {
    const Measurements result =
        measure({.hosts = "{}",
                 .traffic = "[{name: t, pattern: pairs, from: h0, to: h1, arrivals: closed_loop, depth: 4, "
                            "size: 4KB, read_share: 0.5, operation: " +
                            std::string(operation) + "}]"});
    EXPECT_GT(result.summary["traffic"]["t"]["messages"], 100U) << operation;
    EXPECT_FALSE(result.summary.contains("first_error"));
    // Four messages of 4 KB per round trip of about 5 us are 26 Gb/s.
    EXPECT_GT(result.summary["traffic"]["t"]["goodput_bps"].get<double>(), 15e9);
  }
}

// Otherwise address resolution and capability exchange are part of the traffic, and suffer its losses.
TEST(Experiment, host_resolves_399_peers_before_traffic_starts) {
  const Measurements result =
      measure({.topology = "{kind: star, hosts: 400, link: {rate: 100Gbps, delay: 1us}}",
               .traffic = "[{name: t, from: others, to: h0, size: 2KB}]",
               .duration = "30ms"});
  EXPECT_EQ(result.summary["traffic"]["t"]["ended"], 399U);
  EXPECT_EQ(counted(result, "hosts", "mads_sent"), 0U);
  EXPECT_EQ(counted(result, "hosts", "mads_received"), 0U);
}

// Two messages of each sender are in the queue: 125,000 packets.
TEST(Experiment, buffer_pool_covers_longest_port_queue) {
  const Measurements result =
      measure({.topology = "{kind: star, hosts: 65, link: {rate: 100Gbps, delay: 1us}}",
               .hosts = "{}",
               .switches = "{queue: 256MiB}",
               .traffic = "[{name: t, from: others, to: h64, size: unlimited, congestion_control: none}]"});
  EXPECT_GT(result.summary["queues_bytes"]["s0/h64"]["most"], 120'000'000);
  EXPECT_EQ(result.summary["drops"]["all"], 0U);
}

// More queue pairs than a worker serves per round, all of which wait for the capability exchange.
TEST(Experiment, host_with_300_queue_pairs_completes_all_flows) {
  const Measurements result = measure({.traffic = "[{name: t, from: h0, to: h1, flows: 300, size: 2KB}]"});
  EXPECT_EQ(result.summary["traffic"]["t"]["ended"], 300U);
  EXPECT_EQ(counted(result, "hosts", "mads_sent"), 0U);
}

// The result must match the congestion control tests, which use a network of their own.
TEST(Experiment, ldcp_keeps_short_queue_in_incast) {
  const Scenario scenario =
      must(read_scenario(ROCI_SOURCE_DIR "/config/lab/incast.yaml",
                         must(read_runs(ROCI_SOURCE_DIR "/config/lab/incast.yaml", {}))[0].changes));
  const Measurements result = must(run_experiment(scenario, {}));
  const auto& queue = result.summary["queues_bytes"]["s0/h16"];
  EXPECT_LT(queue["p99"], 25'000);
  EXPECT_GT(result.summary["traffic"]["incast"]["goodput_bps"].get<double>(), 91.6e9);
  EXPECT_EQ(result.summary["drops"]["all"], 0U);
}

}  // namespace
}  // namespace roci::lab
