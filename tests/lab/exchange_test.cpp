// Import, export and result formats of HPCC's ns-3 simulator.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/rng.hpp"
#include "congestion/profile.hpp"
#include "lab/exchange/fct_file.hpp"
#include "lab/exchange/ns3_algorithm.hpp"
#include "lab/exchange/ns3_export.hpp"
#include "lab/exchange/ns3_import.hpp"
#include "lab/exchange/ns3_results.hpp"
#include "lab/traffic/flow_plan.hpp"
#include "support/must.hpp"

namespace roci::lab {
namespace {

namespace fs = std::filesystem;
using test::must;

constexpr const char* kTopology = R"(6 2 5
4 5
0 4 100Gbps 1000ns 0.000000
1 4 100Gbps 1us 0
2 5 100Gbps 0.001ms 0
3 5 100Gbps 1000ns 0
4 5 400Gbps 1000ns 0
)";
constexpr const char* kFlows =
    "3\n0 2 3 100 40000 2.000010000\n1 2 3 100 500 2.00001\n3 0 3 100 7000000 2.000020001\n";
constexpr const char* kConfig = R"(ENABLE_QCN 1
PACKET_PAYLOAD_SIZE 1000
TOPOLOGY_FILE t.txt
FLOW_FILE f.txt
SIMULATOR_STOP_TIME 2.5
CC_MODE 1
ALPHA_RESUME_INTERVAL 1
RATE_DECREASE_INTERVAL 4
RP_TIMER 300
EWMA_GAIN 0.00390625
FAST_RECOVERY_TIMES 1
RATE_AI 20Mb/s
RATE_HAI 200Mb/s
MIN_RATE 1000Mb/s
L2_ACK_INTERVAL 1
HAS_WIN 0
KMAX_MAP 2 100000000000 1600 400000000000 6400
KMIN_MAP 2 100000000000 400 400000000000 1600
PMAX_MAP 2 100000000000 0.20 400000000000 0.20
BUFFER_SIZE 32
QLEN_MON_START 2000000000
QLEN_MON_END 2001000000
INT_MULTI 4
LINK_DOWN 0 0 0
TRACE_FILE trace.txt
)";

std::string changed(std::string text, const std::string& what, const std::string& by) {
  const size_t at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return text.replace(at, what.size(), by);
}

// A folder with the files of an experiment.
class Exchange : public testing::Test {
 protected:
  Exchange()
      : folder_(fs::path(testing::TempDir()) /
                ("exchange-" + std::to_string(::getpid()) + "-" +
                 testing::UnitTest::GetInstance()->current_test_info()->name())) {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    file("t.txt", kTopology);
    file("f.txt", kFlows);
    file("c.txt", kConfig);
  }
  ~Exchange() override { fs::remove_all(folder_); }
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  void file(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name, std::ios::binary) << text;
  }
  [[nodiscard]] Ns3ImportOptions options(const std::string& config = "c.txt") const {
    return {.config = (folder_ / config).string(), .base = "", .out = (folder_ / "s.yaml").string()};
  }
  // Error without the folder.
  [[nodiscard]] std::string error() const {
    auto imported = import_ns3(options());
    if (imported) return "";
    std::string message = imported.error().message;
    const std::string prefix = folder_.string() + "/";
    for (size_t at = message.find(prefix); at != std::string::npos; at = message.find(prefix))
      message.erase(at, prefix.size());
    return message;
  }
  [[nodiscard]] std::string error_with(const std::string& name, const std::string& text) const {
    file(name, text);
    return error();
  }
  [[nodiscard]] Scenario imported() const {
    const Ns3Import of = must(import_ns3(options()));
    must(write_ns3_import(options(), of));
    return must(read_scenario(options().out, {}));
  }

  fs::path folder_;
};

TEST_F(Exchange, import_gives_scenario_with_equal_parameters) {
  const Scenario scenario = imported();
  EXPECT_EQ(scenario.name, "c");
  EXPECT_EQ(scenario.time_origin, 2s);
  EXPECT_EQ(scenario.duration, 1ms);
  EXPECT_EQ(scenario.drain, 499ms);
  EXPECT_EQ(scenario.topology.hosts.size(), 4U);
  EXPECT_EQ(scenario.topology.hosts[3].name, "h3");
  EXPECT_EQ(scenario.topology.switches[1].name, "s5");
  // 2 * 3 us, and 1000 bytes on two links of 100 Gb/s and one of 400 Gb/s.
  EXPECT_EQ(scenario.host.congestion_control.base_rtt, 6180ns);
  EXPECT_EQ(scenario.host.packets_per_ack, 1U);
  EXPECT_EQ(scenario.host.flow_control.priorities, 1U << 3);
  const auto& parameters = scenario.host.congestion_control.profiles.at("imported").parameters;
  EXPECT_EQ(parameters.at("dce_tcp_g"), 1020);
  EXPECT_EQ(parameters.at("rpg_time_reset"), 300e3);
  EXPECT_EQ(parameters.at("rpg_ai_rate"), 20e6);
  const SwitchConfig& first = scenario.switches[0];
  EXPECT_EQ(first.buffer.size, 32_MiB);
  EXPECT_EQ(first.ports[0].classes[3].aqm.mark.kmin, Bytes{400'000});
  EXPECT_EQ(first.ports[2].classes[3].aqm.mark.kmax, Bytes{6'400'000});
  EXPECT_EQ(first.ports[0].classes[3].lossless->alpha, 0.125);
  EXPECT_EQ(first.ports[2].classes[3].lossless->alpha, 0.5);
  const auto& list = scenario.traffic.at(0).list;
  ASSERT_EQ(list.size(), 3U);
  EXPECT_EQ(list[0], (ListedFlow{0, 2, 40'000, 10us}));
  EXPECT_EQ(list[2], (ListedFlow{3, 0, 7'000'000, 20'001ns}));
  EXPECT_EQ(scenario.traffic[0].traffic_class, 24 << 2);
}

TEST_F(Exchange, import_reports_each_reason_for_untranslated_keys) {
  EXPECT_EQ(
      must(import_ns3(options())).notes,
      (std::vector<std::string>{"INT_MULTI: not translated: not used by DCQCN",
                                "TRACE_FILE: not translated: the lab writes no packet traces",
                                "PACKET_PAYLOAD_SIZE: 1000 is not a path MTU; packets have 1024 bytes"}));
  file("c.txt", changed(changed(kConfig, "LINK_DOWN 0 0 0", "LINK_DOWN 100 4 5"), "CC_MODE 1", "CC_MODE 3"));
  const auto notes = must(import_ns3(options())).notes;
  const auto has = [&](const std::string& note) { return std::ranges::find(notes, note) != notes.end(); };
  EXPECT_TRUE(has("LINK_DOWN: not translated: switches of the lab do not recompute routes"));
  EXPECT_TRUE(has("HAS_WIN, VAR_WIN: not translated: HPCC has a variable window"));
  EXPECT_TRUE(has("INT_MULTI: not translated: telemetry of the lab has exact values"));
}

// Every key of the table is either read by the importer or has a reason.
TEST_F(Exchange, each_algorithm_can_be_imported_and_read) {
  for (const char* mode : {"1", "3", "7", "8"}) {
    file("c.txt",
         changed(changed(kConfig, "CC_MODE 1", std::string("CC_MODE ") + mode), "0.00390625", "0.0625"));
    const Scenario scenario = imported();
    EXPECT_EQ(scenario.host.congestion_control.profile, "imported") << mode;
    EXPECT_EQ(scenario.switches[0].telemetry.enabled, std::string(mode) == "3") << mode;
  }
}

TEST_F(Exchange, import_reports_file_and_line_of_configuration_errors) {
  EXPECT_EQ(error_with("c.txt", changed(kConfig, "RP_TIMER 300", "RP_TIMR 300")),
            "c.txt:9: unknown key 'RP_TIMR'");
  EXPECT_EQ(error_with("c.txt", changed(kConfig, "RP_TIMER 300", "HAS_WIN 0")),
            "c.txt:16: duplicate key 'HAS_WIN'");
  EXPECT_EQ(error_with("c.txt", changed(kConfig, "RP_TIMER 300", "RP_TIMER")),
            "c.txt:9: RP_TIMER: 0 values; 1 are required");
  EXPECT_EQ(error_with("c.txt", changed(kConfig, "RP_TIMER 300", "RP_TIMER nan")),
            "c.txt:9: RP_TIMER: 'nan' is not a number from 1 to 10000000");
  EXPECT_EQ(error_with("c.txt", changed(kConfig, "RP_TIMER 300\n", "")),
            "c.txt: RP_TIMER: is required by DCQCN");
  EXPECT_EQ(error_with("c.txt", changed(kConfig, "RATE_AI 20Mb/s", "RATE_AI 20Mb")),
            "c.txt:12: RATE_AI: '20Mb' is not a rate such as 100Gbps or 40Mb/s");
  EXPECT_EQ(error_with("c.txt", changed(kConfig, "KMIN_MAP 2", "KMIN_MAP 3")),
            "c.txt:18: KMIN_MAP: 5 values; 7 are required");
  EXPECT_EQ(
      error_with("c.txt", changed(kConfig, "CC_MODE 1", "CC_MODE 10")),
      "c.txt:6: CC_MODE: 10 is not supported; allowed are 1 (DCQCN), 3 (HPCC), 7 (TIMELY) and 8 (DCTCP)");
  EXPECT_EQ(
      error_with("c.txt", changed(kConfig, "2 100000000000 400 400000000000 1600", "1 100000000000 400")),
      "c.txt: KMIN_MAP, KMAX_MAP, PMAX_MAP: a value for links of 400000000000 bit/s is required");
  EXPECT_EQ(error_with("c.txt", ""), "c.txt: contains no keys");
  EXPECT_EQ(error_with("c.txt", changed(kConfig, "t.txt", "u.txt")),
            "the file 'u.txt' that 'c.txt' names is not in its folder, the parent folder or the current "
            "folder; use "
            "--base FOLDER");
}

TEST_F(Exchange, import_reports_file_and_line_of_topology_errors) {
  const auto with = [&](const std::string& what, const std::string& by) {
    return error_with("t.txt", changed(kTopology, what, by));
  };
  EXPECT_EQ(with("6 2 5", "x 2 5"), "t.txt:1: the number of nodes: 'x' is not an integer from 3 to 6144");
  EXPECT_EQ(with("4 5\n0", "4 9\n0"), "t.txt:2: the number of a switch: '9' is not an integer from 0 to 5");
  EXPECT_EQ(with("1 4 100Gbps", "1 4 0Gbps"), "t.txt:4: the rate of a link must be above 0");
  EXPECT_EQ(with("1 4 100Gbps 1us", "1 4 100Gbps 1ux"),
            "t.txt:4: '1ux' is not a time of at most one hour, such as 1000ns or 2.5 (seconds)");
  EXPECT_EQ(with("1 4 100Gbps 1us 0", "1 4 100Gbps 1us 2"),
            "t.txt:4: the error rate must be a number from 0 to 1");
  EXPECT_EQ(with("1 4 100Gbps", "1 2 100Gbps"),
            "t.txt:4: link between the hosts 1 and 2; hosts must be connected to switches");
  EXPECT_EQ(with("1 4 100Gbps", "0 4 100Gbps"), "t.txt:4: host 0 already has a link (max. 1)");
  EXPECT_EQ(with("4 5 400Gbps", "4 4 400Gbps"), "t.txt:7: link from node 4 to itself");
  EXPECT_EQ(with("6 2 5", "6 2 6"), "t.txt:8: the file ends before the first node of a link");
  EXPECT_EQ(with("6 2 5", "7 2 5"), "t.txt:1: host 6 has no link");
}

TEST_F(Exchange, import_reports_file_and_line_of_flow_errors) {
  const auto with = [&](const std::string& what, const std::string& by) {
    return error_with("f.txt", changed(kFlows, what, by));
  };
  EXPECT_EQ(with("3\n", "4\n"), "f.txt:1: 4 flows are specified, but the file has 3");
  EXPECT_EQ(with("1 2 3 100 500", "1 4 3 100 500"), "f.txt:3: receiver: node 4 is a switch");
  EXPECT_EQ(with("1 2 3 100 500", "1 1 3 100 500"),
            "f.txt:3: the sender is the receiver; two hosts are required");
  EXPECT_EQ(with("1 2 3 100 500", "1 2 9 100 500"), "f.txt:3: priority: '9' is not an integer from 0 to 7");
  EXPECT_EQ(with("1 2 3 100 500", "1 2 3 100 0"),
            "f.txt:3: bytes: '0' is not an integer from 1 to 4294967295");
  EXPECT_EQ(with("1 2 3 100 500", "1 2 500"),
            "f.txt:3: 4 words; sender, receiver, priority, port (optional), bytes and start are required");
  EXPECT_EQ(with("1 2 3 100 500", "1 2 3 500"), "") << "ConWeave has no destination port";
}

// HPCC's flow.txt has the count 2 before 256 flows.
TEST_F(Exchange, import_ignores_flows_after_the_specified_number) {
  file("f.txt", changed(kFlows, "3\n", "2\n"));
  const Ns3Import of = must(import_ns3(options()));
  EXPECT_EQ(std::ranges::count(of.lists.at(0).text, '\n'), 3);  // with its heading
  EXPECT_EQ(std::ranges::count(of.notes, "f.txt: 6 words after the last flow are ignored"), 1);
}

// The files of an export have the names NAME.txt and NAME.flows.txt.
TEST_F(Exchange, import_replaces_no_file_of_the_simulator_or_of_another_import) {
  file("c.flows.txt", kFlows);
  file("c.txt", changed(kConfig, "f.txt", "c.flows.txt"));
  Ns3ImportOptions of = options();
  of.out = (folder_ / "c.yaml").string();
  const Ns3Import first = must(import_ns3(of));
  EXPECT_EQ(first.lists.at(0).name, "c.flows.list");
  must(write_ns3_import(of, first));
  std::ostringstream kept;
  kept << std::ifstream(folder_ / "c.flows.txt").rdbuf();
  EXPECT_EQ(kept.str(), kFlows);
  of.out = (folder_ / "d.yaml").string();
  EXPECT_EQ(must(import_ns3(of)).lists.at(0).name, "d.flows.list");
  for (const char* input : {"c.txt", "t.txt", "c.flows.txt"}) {
    of.out = (folder_ / input).string();
    const Status refused = write_ns3_import(of, must(import_ns3(of)));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().message,
              "'" + of.out + "' is an input file; select another scenario file with --out");
  }
}

// Any change of the files gives a scenario or one sentence.
TEST_F(Exchange, import_survives_random_changes) {
  Rng rng{7};
  const std::string good[] = {kTopology, kFlows, kConfig};
  const char* const names[] = {"t.txt", "f.txt", "c.txt"};
  size_t refused = 0;
  for (int round = 0; round < 3000; ++round) {
    const size_t which = rng.below(3);
    std::string text = good[which];
    for (size_t edits = 1 + rng.below(3); edits > 0; --edits) {
      const size_t at = rng.below(text.size());
      constexpr std::string_view kBytes = "0 9\n-.eG\0\xff\"";
      switch (rng.below(3)) {
        case 0:
          text[at] = kBytes[rng.below(kBytes.size())];
          break;
        case 1:
          text.erase(at, 1 + rng.below(20));
          break;
        default:
          text.insert(at, std::string(1 + rng.below(30), kBytes[rng.below(kBytes.size())]));
      }
      if (text.empty()) break;
    }
    file(names[which], text);
    auto read = import_ns3(options());
    if (!read) {
      ++refused;
      EXPECT_FALSE(read.error().message.empty());
      EXPECT_EQ(read.error().message.find('\n'), std::string::npos);
    } else if (round % 50 == 0) {
      must(write_ns3_import(options(), *read));
      (void)read_scenario(options().out, {});
    }
    file(names[which], good[which]);
  }
  EXPECT_GT(refused, 500U);
}

TEST_F(Exchange, import_of_exported_scenario_is_the_same_scenario) {
  for (const char* mode : {"1", "3", "7", "8"}) {
    file("c.txt",
         changed(changed(kConfig, "CC_MODE 1", std::string("CC_MODE ") + mode), "0.00390625", "0.0625"));
    const Ns3Import first = must(import_ns3(options()));
    const Scenario scenario = imported();
    const Ns3Export exported = must(export_ns3(scenario, scenario.name));
    fs::create_directories(folder_ / "out");
    for (const Ns3ListFile& one : exported.files) file("out/" + one.name, one.text);
    const Ns3Import second = must(import_ns3(options("out/c.txt")));
    EXPECT_EQ(second.scenario, first.scenario) << mode;
    EXPECT_EQ(second.lists.at(0).text, first.lists.at(0).text) << mode;
  }
}

// Apart from values of the simulator's configuration files, which the profiles have for one line rate.
TEST_F(Exchange, built_in_profiles_of_the_simulator_have_values_of_the_import) {
  CongestionControlConfig config;
  config.base_rtt = 5us;
  const auto profiles = must(Profiles::create(config));
  for (const char* name : {"dcqcn_hpcc_sim", "dcqcn_hpcc_sim_25g", "timely_hpcc_sim"}) {
    Ns3Settings settings;
    const Status same = set_ns3_algorithm(*must(profiles->find(name)), {}, 1000, settings);
    EXPECT_TRUE(same) << name << ": " << same.error().message;
  }
}

TEST_F(Exchange, export_refuses_what_the_simulator_does_not_have) {
  const Scenario good = imported();
  const auto error_of = [](const Scenario& scenario) {
    auto exported = export_ns3(scenario, "x");
    return exported ? "" : exported.error().message;
  };
  EXPECT_EQ(error_of(good), "");
  Scenario other = good;
  other.traffic[0].operation = Operation::kRead;
  EXPECT_EQ(error_of(other),
            "traffic 'flows': only operation: write can be exported; the simulator has no READs and SENDs");
  other = good;
  other.traffic[0].traffic_class = 26 << 2;
  EXPECT_EQ(error_of(other),
            "traffic 'flows': dscp must be a multiple of 8, the priority of the simulator times 8");
  other = good;
  other.traffic[0].list[0].bytes = 1ULL << 33;
  EXPECT_EQ(error_of(other),
            "traffic 'flows': a flow has 8589934592 bytes; at most 4294967295 can be exported");
  other = good;
  other.host.congestion_control.profiles["imported"].parameters["rpg_byte_reset"] = 10e6;
  EXPECT_EQ(error_of(other), "rpg_byte_reset of dcqcn is 10000000; the simulator has 0");
  other = good;
  other.host.congestion_control.profile = "ldcp";
  EXPECT_EQ(
      error_of(other),
      "congestion control 'ldcp' does not exist in the simulator; allowed are dcqcn, hpcc, timely and dctcp");
  other = good;
  other.switches[0].ports[0].classes[3].aqm.mark_at = AqmConfig::MarkAt::kEnqueue;
  EXPECT_EQ(error_of(other), "switches: class 3: the simulator marks at departure; set mark_at: dequeue");
  other = good;
  other.switches[0].ports[0].classes[3].weight = 7;
  EXPECT_EQ(error_of(other).substr(0, 53), "switches: classes of the ports of 100Gbps: the simula");
  other = good;
  other.host.congestion_control.notification_point.interval = 4us;
  EXPECT_EQ(error_of(other),
            "hosts: CNPs of the simulator have no interval; set notification_point: {interval: 0}");
  other = good;
  other.faults.emplace_back().down = true;
  EXPECT_EQ(error_of(other),
            "faults: the simulator has only losses in both directions, during the whole run");
}

TEST_F(Exchange, export_reports_host_settings_that_it_omits) {
  Scenario scenario = imported();
  EXPECT_EQ(must(export_ns3(scenario, "x")).notes, std::vector<std::string>{});
  scenario.host.window_bytes = 1 << 20;
  scenario.host.packets_per_turn = 4;
  EXPECT_EQ(
      must(export_ns3(scenario, "x")).notes,
      (std::vector<std::string>{"hosts: window: not exported: the simulator has no such setting",
                                "hosts: packets_per_turn: not exported: the simulator has no such setting"}));
}

TEST_F(Exchange, results_have_formats_of_the_simulator) {
  const Scenario scenario = imported();
  Measurements of;
  of.plan = must(plan_traffic(scenario));
  of.flows = {{.end = 40us}, {.end = 30us}, {}};
  of.ideal = {5000.4, 4000.6, 1};
  of.queues.resize(6);
  of.queues[1].add(0, 7);
  of.queues[1].add(2500, 3);
  of.pauses = {{.at = 5us, .is_switch = true, .node = 1, .port = 2, .traffic_class = 3, .pause = true},
               {.at = 6us, .node = 2, .traffic_class = 3}};
  EXPECT_EQ(ns3_fct_text(scenario, of),
            "0b000101 0b000201 10000 100 500 2000010000 20000 4001\n"
            "0b000001 0b000201 10000 100 40000 2000010000 30000 5000\n");
  EXPECT_EQ(ns3_qlen_text(scenario, of), "time: 2001000000\n4 1\n4 2 7 0 3\n4 3\n5 1\n5 2\n5 3\n");
  EXPECT_EQ(ns3_pfc_text(scenario, of), "2000005000 5 1 3 1\n2000006000 2 0 1 0\n");
}

TEST(FctFile, reads_files_of_the_simulator_and_csv) {
  const auto native = must(parse_fct("0b000001 0b000201 10000 100 40000 2000010000 30000 5000\n", "a"));
  const auto csv =
      must(parse_fct("src,dst,bytes,start_ns,fct_ns,ideal_ns\n0,2,40000,2000010000,30000,5000\n", "b"));
  for (const auto& records : {native, csv}) {
    ASSERT_EQ(records.size(), 1U);
    EXPECT_EQ(records[0].bytes, 40'000U);
    EXPECT_EQ(records[0].start, 2'000'010'000ns);
    EXPECT_EQ(records[0].duration, 30us);
    EXPECT_EQ(records[0].ideal, 5000);
  }
  EXPECT_EQ(parse_fct("", "a").error().message, "a: contains no flows");
  EXPECT_EQ(parse_fct("src,dst,bytes,start_ns,fct_ns,ideal_ns\n0,2,1\n", "a").error().message,
            "a:2: six columns are required: src,dst,bytes,start_ns,fct_ns,ideal_ns");
  EXPECT_EQ(parse_fct("a b c d 1 2 0 4\n", "a").error().message,
            "a:1: duration: '0' is not an integer from 1 to 9007199254740992");
}

// Slowdowns of both are then comparable.
TEST(FctFile, minimum_durations_are_those_of_a_run_with_the_same_flows) {
  const std::vector<FctRecord> records = {{1000, 7us, 30us, 1}, {2000, 5us, 60us, 1}};
  StoredRun run;
  run.run["name"] = "mine";
  run.summary["traffic"]["web"] = {{"flows", 2}};
  run.flows = {{2000, 1us, 20'000}, {1000, 3us, 10'000}};
  const auto slowdown = [](const StoredRun& of, const char* traffic) {
    return of.summary.at("traffic").at(traffic).at("slowdown").at("all").at("most").get<double>();
  };
  EXPECT_EQ(slowdown(run_of_fct("f", records, {run}), "web"), 3);
  run.flows[0].bytes = 2001;
  EXPECT_EQ(slowdown(run_of_fct("f", records, {run}), "flows"), 60'000);
}

TEST(FlowList, error_names_file_and_line) {
  const Topology star = must(make_star(3, {}));
  const auto error_of = [&](const std::string& text) {
    auto list = parse_flow_list(text, "f", star);
    return list ? "" : list.error().message;
  };
  EXPECT_EQ(must(parse_flow_list("# all\nh0 h1 5 7 # one\n\n", "f", star)),
            (std::vector<ListedFlow>{{0, 1, 5, 7ns}}));
  EXPECT_EQ(error_of("h0 h1 5\n"), "f:1: 3 words; sender, receiver, bytes and start in ns are required");
  EXPECT_EQ(error_of("h0 h1 5 1\nh0 h9 5 1\n"), "f:2: 'h9' is not a host of the topology");
  EXPECT_EQ(error_of("h0 h0 5 1\n"), "f:1: the sender is the receiver; two hosts are required");
  EXPECT_EQ(error_of("h0 h1 0 1\n"), "f:1: '0' is not a number of bytes from 1 to 2^40");
  EXPECT_EQ(error_of("h0 h1 5 -1\n"), "f:1: '-1' is not a start in ns of at most one hour");
  EXPECT_EQ(error_of("# none\n"), "f: contains no flows");
}

}  // namespace
}  // namespace roci::lab
