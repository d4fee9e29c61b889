// Errors in scenarios: one sentence with file, line and key.
#include "lab/scenario/scenario.hpp"

#include <gtest/gtest.h>

#include <filesystem>

#include "support/must.hpp"

namespace roci::lab {
namespace {

using test::must;

constexpr const char* kGood = R"(name: x
duration: 1ms
topology:
  kind: star
  hosts: 3
  link: {rate: 100Gbps, delay: 1us}
hosts:
  congestion_control: {profile: ldcp}
traffic:
  - {name: t, from: others, to: h2, size: unlimited}
)";

std::string error_of(const std::vector<ConfigChange>& changes, const std::string& text = kGood) {
  auto read = parse_scenario(text, "x.yaml", changes);
  return read ? "" : read.error().message;
}
std::string with(const std::string& path, const std::string& value) {
  return error_of({{path, value, "--set " + path}});
}
std::string replaced(const std::string& what, const std::string& by) {
  std::string text = kGood;
  text.replace(text.find(what), what.size(), by);
  return error_of({}, text);
}

TEST(Scenario, parses_valid_scenario) {
  const Scenario scenario = must(parse_scenario(kGood, "x.yaml"));
  EXPECT_EQ(scenario.topology.hosts.size(), 3U);
  EXPECT_EQ(scenario.switches.size(), 1U);
  EXPECT_EQ(scenario.switches[0].ports.size(), 3U);
  EXPECT_EQ(scenario.traffic[0].from, (std::vector<uint32_t>{0, 1}));
  EXPECT_EQ(scenario.traffic[0].to, (std::vector<uint32_t>{2}));
  // Two links of 1 us in each direction, and the transmission time of a full packet and an acknowledgment on each.
  EXPECT_EQ(scenario.host.congestion_control.base_rtt, 4190ns);
}

TEST(Scenario, rejects_missing_and_unknown_keys) {
  EXPECT_EQ(replaced("  hosts: 3", "  host: 3"), "x.yaml:4: topology: the required key 'hosts' is missing");
  EXPECT_EQ(
      replaced("duration: 1ms", "duration: 1ms\nduratoin: 2ms"),
      "x.yaml:3: duratoin is an unknown key, did you mean 'duration'? (allowed: name, about, source, seed, "
      "time_origin, "
      "duration, drain, settle, sample, payload, topology, hosts, switches, traffic, faults, ports, "
      "windows, variants, sweep, expect)");
}

TEST(Scenario, rejects_invalid_topologies) {
  EXPECT_EQ(replaced("rate: 100Gbps", "rate: 0"), "x.yaml:6: topology.link.rate: must be above 0");
  EXPECT_EQ(replaced("hosts: 3", "hosts: 1"),
            "x.yaml:4: topology: 1 hosts per switch; 2 to 1024 are allowed");
  const std::string graph = R"(name: x
duration: 1ms
topology:
  kind: graph
  hosts: [a, b]
  switches: [s]
  links:
    - {between: [a, s]}
traffic:
  - {from: a, to: b, size: 1KB}
)";
  EXPECT_EQ(error_of({}, graph), "x.yaml:4: topology: host 'b' is not connected");
}

TEST(Scenario, rejects_telemetry_algorithms_without_telemetry) {
  EXPECT_EQ(with("hosts.congestion_control.profile", "hpcc"),
            "x.yaml:10: traffic[0]: 'hpcc' requires in-band telemetry, and hosts do not send it; set hosts: "
            "telemetry: {udp_port: 5201, begin: all}");
  EXPECT_EQ(error_of({{"hosts.congestion_control.profile", "hpcc", ""},
                      {"hosts.telemetry", "{udp_port: 5201, begin: all}", ""}}),
            "x.yaml:10: traffic[0]: 'hpcc' requires in-band telemetry, and switches do not add it; set "
            "switches: telemetry: {udp_port: 5201, switch_id: 1}");
  EXPECT_EQ(error_of({{"hosts.congestion_control.profile", "hpcc", ""},
                      {"hosts.telemetry", "{udp_port: 5201, begin: all}", ""},
                      {"switches.telemetry", "{udp_port: 5201, switch_id: 1}", ""}}),
            "");
}

TEST(Scenario, rejects_invalid_traffic_and_faults) {
  EXPECT_EQ(with("traffic[0].to", "h7"),
            "--set traffic[0].to: traffic[0].to: 'h7' is not a host, a range FIRST-LAST, 'all' or 'others'; "
            "hosts are h0 to h2");
  EXPECT_EQ(with("traffic[0].congestion_control", "ldpc").substr(0, 118),
            "--set traffic[0].congestion_control: traffic[0].congestion_control: unknown congestion control "
            "algorithm 'ldpc'; avail");
  EXPECT_EQ(with("traffic[0].size", "huge").substr(0, 53),
            "--set traffic[0].size: traffic[0].size: 'huge' is not");
  EXPECT_EQ(with("traffic[0].distribution", "web.txt"),
            "x.yaml:10: traffic[0]: exactly one of size and distribution is required");
  EXPECT_EQ(with("traffic[0].arrivals", "poisson"),
            "x.yaml:10: traffic[0].size: unlimited requires arrivals: at_once");
  EXPECT_EQ(with("traffic[0].from", "h2"),
            "x.yaml:10: traffic[0].to: the only receiver is also the only sender");
  EXPECT_EQ(with("faults", "[{between: [h0, h1], down: true}]"),
            "--set faults: faults[0].between: there is no link between 'h0' and 'h1'");
}

TEST(Scenario, rejects_times_without_end) {
  EXPECT_EQ(with("sample", "never"), "--set sample: sample: must be 100 ns to 1 h");
  EXPECT_EQ(with("traffic[0].stagger", "never"),
            "--set traffic[0].stagger: traffic[0].stagger: must be 0 to 1 h");
  EXPECT_EQ(with("traffic", "[{from: h0, to: h1, size: 1KB, arrivals: closed_loop, think: never}]"),
            "--set traffic: traffic[0].think: must be 0 to 1 h");
}

TEST(Scenario, rejects_traffic_that_has_no_flow) {
  const auto traffic = [](const std::string& keys) { return with("traffic", "[{size: 1KB, " + keys + "}]"); };
  const std::string where = "--set traffic: traffic[0]";
  EXPECT_EQ(traffic("pattern: pairs, from: h0-h1, to: h0-h1"), where + ".to: 'h0' would send to itself");
  EXPECT_EQ(traffic("pattern: random, from: h0, to: [h0, h0], arrivals: poisson, load: 0.5"),
            where + ".to: the only receiver is also the only sender");
}

TEST(Scenario, rejects_faults_that_affect_the_same_frames) {
  const auto faults = [](const std::string& list) { return with("faults", "[" + list + "]"); };
  const std::string where = "--set faults: faults";
  const std::string loss = "{between: [h0, s0], loss: 0.1, from: 10us, until: 20us}";
  EXPECT_EQ(faults(loss + ", {between: [s0, h0], marking: 0.1, from: 19us}"),
            where + "[1]: overlaps faults[0] on the same link; use consecutive intervals");
  EXPECT_EQ(faults(loss + ", {between: [s0, h0], marking: 0.1, from: 20us}"), "");
  EXPECT_EQ(faults(loss + ", {between: [s0, h0], down: true}"), "");
  EXPECT_EQ(
      faults("{between: [h0, s0], loss: 0.1, one_way: true}, {between: [s0, h0], loss: 0.1, one_way: true}"),
      "");
  EXPECT_EQ(faults("{between: [h0, s0], down: true, one_way: true}"),
            where + "[0].one_way: cannot be combined with down, which affects both directions");
}

TEST(Scenario, messages_of_closed_loops_are_limited) {
  EXPECT_EQ(with("traffic", "[{from: h0, to: h1, size: 2GiB, arrivals: closed_loop}]"),
            "--set traffic: traffic[0].size: messages of a closed loop must have at most 1 GiB");
}

// Cables of different lengths and rates at one switch.
TEST(Scenario, base_rtt_is_that_of_the_two_most_distant_hosts) {
  const std::string text = R"(name: x
duration: 1ms
topology:
  kind: graph
  hosts: [h0, h1, h2]
  switches: [s0]
  link: {rate: 100Gbps, delay: 1us}
  links:
    - {between: [h0, s0], delay: 5us}
    - {between: [h1, s0], delay: 2us}
    - {between: [h2, s0], delay: 2us, rate: 1Gbps}
traffic: [{from: h0, to: h1, size: 1KB}]
)";
  // 2 * (5 us + 2 us), and a packet of 1106 bytes and an acknowledgment of 86 bytes at 100 Gb/s and at 1 Gb/s.
  EXPECT_EQ(must(parse_scenario(text, "x.yaml")).host.congestion_control.base_rtt, 23631ns);
}

TEST(Scenario, switches_have_seeds_of_the_file) {
  const std::string text = R"(name: x
duration: 1ms
topology: {kind: leaf_spine, leaves: 2, spines: 2, hosts_per_leaf: 1, link: {rate: 25Gbps}}
switches: {seed: 7, ecmp_seed: 9}
traffic: [{from: h0, to: h1, size: 1KB}]
)";
  const Scenario scenario = must(parse_scenario(text, "x.yaml"));
  EXPECT_EQ(scenario.switches[1].seed, 7U * 4096 + 1);
  EXPECT_EQ(scenario.switches[0].ecmp_seed, 9U);
  EXPECT_EQ(scenario.switches[3].ecmp_seed, 12U)
      << "equal hashes in all switches would use a part of the paths";
}

TEST(Scenario, mac_tables_have_the_size_of_the_switch) {
  EXPECT_EQ(must(parse_scenario(kGood, "x.yaml")).switches[0].mac_table_size, 64U);
  EXPECT_EQ(
      must(parse_scenario(kGood, "x.yaml", {{"topology.hosts", "100", "h"}})).switches[0].mac_table_size,
      512U);
}

TEST(Scenario, listed_traffic_excludes_keys_of_generated_flows) {
  const auto traffic = [](const std::string& keys) { return with("traffic", "[{name: t, " + keys + "}]"); };
  const std::string where = "--set traffic: traffic[0]";
  EXPECT_EQ(traffic("list: flows.txt, to: h1"),
            where + ".to: cannot be combined with list, which specifies all flows");
  EXPECT_EQ(traffic("list: flows.txt"),
            where + ".list: the list of flows 'flows.txt' cannot be read: No such file or directory");
}

TEST(Scenario, classes_by_rate_apply_to_ports_of_that_rate) {
  const std::string text = R"(name: x
duration: 1ms
topology: {kind: dumbbell, left: 1, right: 1, link: {rate: 25Gbps}, trunk: {rate: 100Gbps}}
switches:
  classes: [{class: 0, mark: {kmin: 1KB}}]
  by_rate: [{rate: 100Gbps, classes: [{class: 0, mark: {kmin: 4KB}}]}]
traffic: [{from: h0, to: h1, size: 1KB}]
)";
  const Scenario scenario = must(parse_scenario(text, "x.yaml"));
  EXPECT_EQ(scenario.switches[0].ports[0].classes[0].aqm.mark.kmin, Bytes{1000});
  EXPECT_EQ(scenario.switches[0].ports[1].classes[0].aqm.mark.kmin, Bytes{4000});
  EXPECT_EQ(error_of({{"switches.by_rate[0].rate", "50Gbps", "--set r"}}, text),
            "--set r: switches.by_rate[0].rate: no link of the topology has this rate");
}

TEST(Scenario, rejects_invalid_ports) {
  const auto ports = [](const std::string& list) { return with("ports", "[" + list + "]"); };
  const std::string where = "--set ports: ports";
  const std::string good = R"({between: [h0, s0], devices: ["net_a0,x=y", net_a1]})";
  EXPECT_EQ(ports(good), "");
  EXPECT_EQ(ports("{between: [h0, h1], devices: [net_a0, net_a1]}"),
            where + "[0].between: there is no link between 'h0' and 'h1'");
  EXPECT_EQ(ports("{between: [h0], devices: [net_a0, net_a1]}"),
            where + "[0].between: must name the two ends of a link");
  EXPECT_EQ(ports(good + ", {between: [s0, h0], devices: [net_a2, net_a3]}"),
            where + "[1].between: names a link that already has ports");
  EXPECT_EQ(ports(good + ", {between: [s0, h1], devices: [net_a2, net_a0]}"),
            where + "[1].devices: 'net_a0' is a duplicate; change the number of one of them");
  EXPECT_EQ(ports("{between: [h0, s0], devices: [net_a0]}"),
            where + "[0].devices: must name two devices, one per end of the link");
  EXPECT_EQ(ports(R"({between: [h0, s0], devices: ["net_a0,x", net_a1]})"),
            where + R"([0].devices: device net_a0: "x" is not an option of the form key=value)");
  EXPECT_EQ(ports("{between: [h0, s0]}"), where + "[0]: the required key 'devices' is missing");
}

// Devices belong to the ends in the order of `between`.
TEST(Scenario, devices_follow_order_of_link_ends) {
  const auto of = [](const char* between) {
    const Scenario scenario = must(parse_scenario(
        kGood, "x.yaml",
        {{"ports", "[{between: " + std::string(between) + ", devices: [net_a0, net_a1]}]", "p"}}));
    const RealCable& real = scenario.ports.at(0);
    const Cable& cable = scenario.topology.cables[real.cable];
    return scenario.topology.name_of(cable.a) + " " + real.devices[0] + " " +
           scenario.topology.name_of(cable.b) + " " + real.devices[1];
  };
  const std::string one = of("[h1, s0]"), other = of("[s0, h1]");
  EXPECT_TRUE(one == "h1 net_a0 s0 net_a1" || one == "s0 net_a1 h1 net_a0") << one;
  EXPECT_TRUE(other == "h1 net_a1 s0 net_a0" || other == "s0 net_a0 h1 net_a1") << other;
}

TEST(Scenario, reports_missing_file) {
  EXPECT_EQ(read_scenario("nowhere.yaml", {}).error().message,
            "the configuration file 'nowhere.yaml' cannot be read: No such file or directory");
}

TEST(Scenario, rejects_invalid_windows) {
  const auto with = [](const std::string& windows) {
    return replaced("duration: 1ms", "duration: 1ms\nwindows: [" + windows + "]");
  };
  EXPECT_EQ(with("{from: 1us}"), "x.yaml:3: windows[0]: the required key 'name' is missing");
  EXPECT_EQ(with("{name: a}, {name: a}"), "x.yaml:3: windows[1].name: duplicate window 'a'");
  EXPECT_EQ(with("{name: a, from: 5us, until: 5us}"),
            "x.yaml:3: windows[0].until: must come after from and not after the duration");
  EXPECT_EQ(with("{name: a, until: 2ms}"),
            "x.yaml:3: windows[0].until: must come after from and not after the duration");
}

// Every file of the gallery is valid in all its runs. The expectations are checked by the tests gallery_NAME.
TEST(Scenario, gallery_files_are_valid_and_have_expectations) {
  size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(ROCI_SOURCE_DIR "/config/lab")) {
    if (entry.path().extension() != ".yaml") continue;
    ++files;
    const auto runs = must(read_runs(entry.path().string(), {}));
    EXPECT_FALSE(must(read_expectations(entry.path().string(), runs)).empty()) << entry.path();
    for (const RunSpec& run : runs) {
      auto read = read_scenario(entry.path().string(), run.changes);
      EXPECT_TRUE(read) << entry.path() << " " << run.name << ": " << (read ? "" : read.error().message);
    }
  }
  EXPECT_GE(files, 2U);
}

}  // namespace
}  // namespace roci::lab
