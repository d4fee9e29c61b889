#include "roci-top/tables/table.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "roci-top/output/json_lines.hpp"
#include "roci-top/tables/text.hpp"
#include "top/looks.hpp"

namespace roci::top {
namespace {

// Two snapshots of a switch, 1 s apart. p0 receives 10 Gb/s and drops frames, p1 sends the traffic and has a queue,
// p2 is idle.
class TableTest : public testing::Test {
 protected:
  TableTest() {
    before_ = look_at(1s, 0);
    now_ = look_at(2s, 1);
  }

  static Snapshot look_at(Nanos at, uint64_t seconds) {
    SwitchSample sw{.name = "s1",
                    .info = {},
                    .events = {{"cnm", counted(at, {{"sent", 100 + 12 * seconds}})}},
                    .ports = {}};
    PortSample p0{.name = "p0",
                  .counted = counted(at, {{"link_up", 1},
                                          {"queue_limit", 1000},
                                          {"rx_bytes", 1'250'000'000 * seconds},
                                          {"rx_packets", 1'000'000 * seconds},
                                          {"dropped", 50 + 300 * seconds},
                                          {"drops/runt", 50},
                                          {"drops/bad_source", 300 * seconds}}),
                  .classes = {}};
    PortSample p1{.name = "p1",
                  .counted = counted(at, {{"link_up", 1},
                                          {"queue_limit", 1'000'000},
                                          {"queue_bytes", 250'000},
                                          {"queue_peak_bytes", 750'000},
                                          {"tx_bytes", 1'250'000'000 * seconds},
                                          {"tx_packets", 1'000'000 * seconds}}),
                  .classes = {}};
    p1.classes[0] = counted(at, {{"tx_packets", 5}});
    p1.classes[3] = counted(at, {{"tx_bytes", 1'250'000'000 * seconds},
                                 {"tx_packets", 1'000'000 * seconds},
                                 {"marked", 40'000 * seconds},
                                 {"queue_bytes", 250'000},
                                 {"queue_peak_bytes", 750'000},
                                 {"pauses_received", 20 * seconds},
                                 {"paused_nanos", 400'000'000 * seconds}});
    PortSample p2{.name = "p2", .counted = counted(at, {{"link_up", 0}}), .classes = {}};
    p2.classes[0] = counted(at, {{"tx_packets", 3}});
    sw.ports = {p0, p1, p2};
    return {.at = at,
            .processes =
                {{.prefix = "roci-7-x", .pid = 7, .program = "roci-switch", .switches = {sw}, .hosts = {}}},
            .silent = 0};
  }

  [[nodiscard]] std::string text(const Look& look) const { return text_of(now_, before_, look); }

  Snapshot before_, now_;
};

TEST_F(TableTest, renders_80_columns) {
  EXPECT_EQ(text({.width = 80}),
            "switch s1 in roci-switch 7, DPDK prefix roci-7-x\n"
            "port     rx Gb/s tx Gb/s rx Mpps tx Mpps queue         now  peak marks/s drops/s\n"
            "p0        10.000   0.000   1.000   0.000 [         ]     0     0             300\n"
            "  drops/s: bad_source 300\n"
            "p1         0.000  10.000   0.000   1.000 [##    |  ]  244K  732K               0\n"
            " class 0           0.000           0.000 [         ]     0     0       0\n"
            " class 3          10.000           1.000 [##    |  ]  244K  732K   40.0k\n"
            "    pauses/s: in 20, paused 40%\n"
            "p2         0.000   0.000   0.000   0.000 [         ]     0     0               0\n"
            "  link down\n"
            "  cnm/s: sent 12\n");
}

TEST_F(TableTest, renders_pauses_in_160_columns) {
  const std::string shown = text({.width = 160});
  EXPECT_NE(shown.find("marks/s drops/s  PFC in PFC out  paused\n"), std::string::npos) << shown;
  EXPECT_NE(shown.find("  40.0k              20       0     40%\n"), std::string::npos) << shown;
  EXPECT_EQ(shown.find("pauses/s"), std::string::npos) << "not twice";
}

TEST_F(TableTest, lines_never_exceed_terminal_width) {
  now_.processes[0].switches[0].ports[1].name = "a-port-with-a-name-that-is-too-long-for-every-column";
  for (size_t width = 1; width <= 250; ++width) {
    for (const Line& line : render(now_, before_, {.width = width})) EXPECT_LE(line.text.size(), width);
  }
}

TEST_F(TableTest, classes_can_be_hidden) {
  EXPECT_NE(text({.classes = true}).find("class 3"), std::string::npos);
  EXPECT_EQ(text({.classes = false}).find("class 3"), std::string::npos);
}

TEST_F(TableTest, sorts_ports_by_selected_column) {
  const auto order = [this](Sort sort) {
    const std::string shown = text({.width = 80, .classes = false, .sort = sort});
    std::vector<std::pair<size_t, std::string>> places;
    for (const char* name : {"p0", "p1", "p2"})
      places.emplace_back(shown.find("\n" + std::string{name} + " "), name);
    std::ranges::sort(places);
    return places[0].second + places[1].second + places[2].second;
  };
  EXPECT_EQ(order(Sort::kName), "p0p1p2");
  EXPECT_EQ(order(Sort::kTransmit), "p1p0p2");
  EXPECT_EQ(order(Sort::kQueue), "p1p0p2");
  EXPECT_EQ(order(Sort::kDrops), "p0p1p2");
  std::ranges::reverse(now_.processes[0].switches[0].ports);
  EXPECT_EQ(order(Sort::kName), "p2p1p0");
  EXPECT_EQ(order(Sort::kDrops), "p0p2p1") << "those that are equal stay as they were";
}

TEST_F(TableTest, shows_faults_and_injected_counts) {
  Counted& port = now_.processes[0].switches[0].ports[0].counted;
  port.texts["faults"] = "loss 0.01";
  port.numbers["injected/lost"] = 1234;
  EXPECT_NE(text({}).find("  faults: loss 0.01; injected/s: lost 1.2k\n"), std::string::npos) << text({});
  port.texts["faults"] = "none";
  EXPECT_EQ(text({}).find("faults"), std::string::npos);
}

TEST_F(TableTest, new_process_has_no_rates) {
  before_.processes[0].pid = 6;
  EXPECT_NE(text({}).find("p0         0.000   0.000"), std::string::npos) << text({});
}

TEST_F(TableTest, json_contains_same_values) {
  const auto json = to_json(now_, before_);
  EXPECT_EQ(json["seconds"], 1.0);
  const auto& sw = json["processes"][0]["switches"][0];
  EXPECT_EQ(sw["name"], "s1");
  EXPECT_EQ(sw["cnm"]["per_second"]["sent"], 12.0);
  const auto& p1 = sw["ports"][1];
  EXPECT_EQ(p1["name"], "p1");
  EXPECT_EQ(p1["queue_bytes"], 250'000);
  EXPECT_EQ(p1["counts"]["tx_packets"], 1'000'000);
  EXPECT_EQ(p1["per_second"]["tx_bytes"], 1.25e9);
  EXPECT_EQ(p1["classes"]["3"]["counts"]["marked"], 40'000);
  EXPECT_FALSE(p1["counts"].contains("queue_bytes"));
}

TEST(Rates, are_computed_between_two_samples) {
  const Counted before = counted(10s, {{"a", 100}});
  EXPECT_EQ(per_second(counted(12s, {{"a", 300}}), &before, "a"), 100.0);
  EXPECT_EQ(per_second(counted(12s, {{"a", 300}}), nullptr, "a"), 0.0);
  EXPECT_EQ(per_second(counted(12s, {{"a", 90}}), &before, "a"), 0.0) << "another one has begun again";
  EXPECT_EQ(per_second(counted(10s, {{"a", 300}}), &before, "a"), 0.0);
  EXPECT_EQ(per_second(counted(11s, {{"b", 7}}), &before, "b"), 7.0) << "what was not said was 0";
}

TEST(ShortNumber, has_at_most_five_characters) {
  EXPECT_EQ(short_number(0, false), "0");
  EXPECT_EQ(short_number(0.25, false), "0.2");
  EXPECT_EQ(short_number(7, false), "7");
  EXPECT_EQ(short_number(999, false), "999");
  EXPECT_EQ(short_number(999.7, false), "1.0k");
  EXPECT_EQ(short_number(12'345, false), "12.3k");
  EXPECT_EQ(short_number(123'456, false), "123k");
  EXPECT_EQ(short_number(999'499, false), "999k");
  EXPECT_EQ(short_number(999'600, false), "1.0M");
  EXPECT_EQ(short_number(1024, true), "1.0K");
  EXPECT_EQ(short_number(1 << 20, true), "1.0M");
  EXPECT_EQ(short_number(1000, true), "1.0K");
  for (double value = 0.001; value < 999e12; value *= 1.01) {
    EXPECT_LE(short_number(value, false).size(), 5U) << value;
    EXPECT_LE(short_number(value, true).size(), 5U) << value;
  }
}

TEST(Bar, shows_current_value_and_peak) {
  EXPECT_EQ(bar(0, 0, 100, 12), "[          ]");
  EXPECT_EQ(bar(50, 50, 100, 12), "[#####     ]");
  EXPECT_EQ(bar(50, 80, 100, 12), "[#####  |  ]");
  EXPECT_EQ(bar(100, 100, 100, 12), "[##########]");
  EXPECT_EQ(bar(1, 2, 1'000'000, 12), "[#         ]") << "however little it is";
  EXPECT_EQ(bar(0, 1, 1'000'000, 12), "[|         ]");
  EXPECT_EQ(bar(300, 300, 100, 12), "[##########]") << "lossless headroom is beyond the limit";
  EXPECT_EQ(bar(3, 5, 0, 12), "[##########]");
  EXPECT_EQ(bar(3, 5, 10, 2), "  ");
}

TEST(FittedText, has_requested_width_and_no_control_characters) {
  EXPECT_EQ(fitted("port", 6), "port  ");
  EXPECT_EQ(fitted("a\x1b[31mb\n\x7f", 20), "a?[31mb??           ");
  EXPECT_EQ(fitted("\xc2\x9b"
                   "31m",
                   5),
            "?31m ")
      << "CSI as one character";
  EXPECT_EQ(fitted("grün", 4), "grün");
  EXPECT_EQ(fitted("grün", 3), "grü");
  EXPECT_EQ(fitted("\xff\x80x", 4), "??x ") << "no UTF-8";
  EXPECT_EQ(fitted("abc", 0), "");
}

}  // namespace
}  // namespace roci::top
