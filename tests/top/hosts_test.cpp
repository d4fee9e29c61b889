// Tests of the display of hosts and their queue pairs, as lines and as JSON.
#include <gtest/gtest.h>

#include <algorithm>

#include "roci-top/output/json_lines.hpp"
#include "top/looks.hpp"

namespace roci::top {
namespace {

// Two snapshots of a host with three queue pairs, 1 s apart. The first queue pair sends 8 Gb/s under congestion
// control, the second sends READ responses without it, the third sends datagrams.
class HostsTest : public testing::Test {
 protected:
  HostsTest() {
    before_ = look_at(1s, 0);
    now_ = look_at(2s, 1);
  }

  static Snapshot look_at(Nanos at, uint64_t seconds) {
    HostSample host;
    host.name = "client";
    host.info = counted(at,
                        {{"queue_pairs", 3},
                         {"link_up", 1},
                         {"workers", 1},
                         {"states/RTS", 3},
                         {"port/rx_bytes", 125'000'000 * seconds},
                         {"port/tx_bytes", 1'250'000'000 * seconds},
                         {"port/rx_packets", 100'000 * seconds},
                         {"port/tx_packets", 300'000 * seconds},
                         {"port/marked", 1'200 * seconds},
                         {"port/wakes", 0},
                         {"port/ring_bytes", 3 << 10},
                         {"port/ring_peak_bytes", 400 << 10},
                         {"port/ring_size", 1 << 20}},
                        {{"addresses", "10.0.0.1/24"}});
    host.counters = counted(at, {{"packets_retransmitted", 25 * seconds},
                                 {"rx_icrc_errors", 7 * seconds},
                                 {"timeouts", 2 * seconds},
                                 {"np_cnp_sent", 5 * seconds},
                                 {"rp_cnp_handled", 40 * seconds},
                                 {"np_ecn_marked_roce_packets", 1500 * seconds}});
    host.looked_at = host.chosen = 3;
    host.queue_pairs = {
        {.number = 17,
         .counted = counted(at,
                            {{"qpn", 17},
                             {"peer_qpn", 4711},
                             {"acked_bytes", 1'000'000'000 * seconds},
                             {"received_bytes", 5},
                             {"sent_packets", 250'000 * seconds},
                             {"acked_packets", 200'000 * seconds},
                             {"marked_packets", 5'000 * seconds},
                             {"rp_cnp_handled", 40 * seconds},
                             {"losses", 2 * seconds},
                             {"timeouts", 1 * seconds},
                             {"rate", 9'500'000'000},
                             {"window", 0},
                             {"in_flight", 65'536},
                             {"rtt_ns", 12'340}},
                            {{"type", "RC"},
                             {"state", "RTS"},
                             {"peer", "10.0.0.2"},
                             {"algorithm", "dcqcn"},
                             {"cc_state", "additive_increase"}})},
        {.number = 18,
         .responses = true,
         .counted = counted(
             at, {{"qpn", 18}, {"peer_qpn", 4712}, {"responses", 1}, {"acked_bytes", 62'500'000 * seconds}},
             {{"type", "RC"}, {"state", "RTS"}, {"peer", "10.0.0.2"}, {"algorithm", ""}})},
        {.number = 16'777'214,
         .counted = counted(at, {{"qpn", 16'777'214}, {"send_psn", seconds == 0 ? 0xffff00U : 0x1388U}},
                            {{"type", "UD"}, {"state", "RTS"}, {"peer", ""}})}};
    ProcessSample process;
    process.prefix = "roci-7-x";
    process.pid = 7;
    process.program = "roci-perf";
    process.hosts = {host};
    Snapshot snapshot;
    snapshot.at = at;
    snapshot.processes = {process};
    return snapshot;
  }

  HostSample& host() { return now_.processes[0].hosts[0]; }

  [[nodiscard]] std::string text(const Look& look) const { return text_of(now_, before_, look); }

  Snapshot before_, now_;
};

TEST_F(HostsTest, renders_80_columns) {
  EXPECT_EQ(text({.width = 80}),
            "host     rx Gb/s tx Gb/s     QPs  retx/s drops/s    CE/s  CNP in CNP out\n"
            "client     1.000  10.000       3      25       7    1.5k      40       5\n"
            "  10.0.0.1/24; roci-perf 7, prefix roci-7-x\n"
            "  fullest ring: 3.0KB, peak 400KB of 1.0MB; per second: port/marked 1.2k\n"
            "  drops/s: rx_icrc_errors 7\n"
            "  events/s: timeouts 2\n"
            "\n"
            "queue pairs of client in roci-perf 7: 3; r: READ responses\n"
            "QP        state rx Gb/s tx Gb/s algorithm cc state  cc Gb/s window  RTT us  CE %\n"
            "17        RTS     0.000   8.000 dcqcn     additive_   9.500      -    12.3   2.5\n"
            "18r       RTS         -   0.500 -         -               -      -       -     -\n"
            "16777214  RTS         -       - -         -               -      -       -     -\n");
}

TEST_F(HostsTest, renders_peers_and_packets_in_160_columns) {
  const std::string shown = text({.width = 160});
  EXPECT_NE(shown.find("host     rx Gb/s tx Gb/s rx Mpps tx Mpps     QPs"), std::string::npos) << shown;
  EXPECT_NE(shown.find("17        RC   RTS   10.0.0.2 4711"), std::string::npos) << shown;
  EXPECT_NE(shown.find("additive_incre "), std::string::npos) << shown;
  EXPECT_NE(shown.find("    40      3\n"), std::string::npos) << shown;
  // The PSN wrapped around: 0x1388 + 0x100 packets.
  EXPECT_NE(shown.find("UD   RTS   -                                   -       -   0.005"), std::string::npos)
      << shown;
}

TEST_F(HostsTest, lines_never_exceed_terminal_width) {
  host().name = before_.processes[0].hosts[0].name = "a-host-with-a-name-that-is-too-long-for-every-column";
  for (QueuePairSample& qp : host().queue_pairs) {
    qp.counted.texts["peer"] = "fd00:1111:2222:3333:4444:5555:6666:7777";
    qp.counted.texts["cc_state"] = "a state with a name that is too long";
    qp.counted.numbers["rate"] = qp.counted.numbers["rtt_ns"] = UINT64_MAX;
    qp.counted.numbers["acked_bytes"] = UINT64_MAX;
  }
  for (size_t width = 1; width <= 250; ++width) {
    for (const Line& line : render(now_, before_, {.width = width})) EXPECT_LE(line.text.size(), width);
  }
}

// Every column of a heading fits into the width.
TEST_F(HostsTest, no_column_is_truncated_from_60_columns_on) {
  for (size_t width = 60; width <= 200; ++width) {
    for (const Line& line : render(now_, before_, {.width = width})) {
      if (line.style != Line::Style::kHeading || line.text.starts_with("host")) continue;
      const std::string last = line.text.substr(0, line.text.find_last_not_of(' ') + 1);
      EXPECT_TRUE(last.ends_with("CE %") || last.ends_with("lost/s") || last.ends_with("RTT us"))
          << width << last;
    }
  }
}

TEST_F(HostsTest, queue_pairs_can_be_hidden) {
  EXPECT_NE(text({.queue_pairs = true}).find("dcqcn"), std::string::npos);
  EXPECT_EQ(text({.queue_pairs = false}).find("dcqcn"), std::string::npos);
  EXPECT_NE(text({.queue_pairs = false}).find("client"), std::string::npos);
}

TEST_F(HostsTest, reports_shown_and_total_queue_pairs) {
  host().info.numbers["queue_pairs"] = 10'000;
  host().looked_at = 10'000;
  EXPECT_NE(text({}).find("queue pairs of client in roci-perf 7: 3 of 10,000, the busiest; r"),
            std::string::npos)
      << text({});
  host().info.numbers["queue_pairs"] = 1'000'000;
  host().looked_at = 16'384;
  EXPECT_NE(text({.width = 120}).find(": 3 of 1,000,000, the busiest of the first 16,384;"),
            std::string::npos)
      << text({.width = 120});
}

TEST_F(HostsTest, queue_pairs_requested_for_next_poll_are_not_shown) {
  host().queue_pairs[0].shown = false;
  EXPECT_EQ(text({}).find("dcqcn"), std::string::npos);
  EXPECT_EQ(to_json(now_, before_)["processes"][0]["hosts"][0]["queue_pairs"].size(), 2U);
}

TEST_F(HostsTest, reports_differing_states_and_link_down) {
  EXPECT_EQ(text({}).find("queue pairs: "), std::string::npos);
  host().info.numbers["states/RTS"] = 9'998;
  host().info.numbers["states/ERR"] = 2;
  EXPECT_NE(text({}).find("  queue pairs: ERR 2, RTS 9,998\n"), std::string::npos) << text({});
  host().info.numbers["link_up"] = 0;
  EXPECT_NE(text({}).find("  link down\n"), std::string::npos);
}

TEST_F(HostsTest, sorts_queue_pairs_by_selected_column) {
  const auto first = [this](Sort sort) {
    const std::string shown = text({.width = 80, .sort = sort});
    const size_t row = shown.find('\n', shown.find("QP        state")) + 1;
    return shown.substr(row, shown.find(' ', row) - row);
  };
  std::ranges::reverse(now_.processes[0].hosts[0].queue_pairs);
  EXPECT_EQ(first(Sort::kName), "16777214") << "as they came";
  std::ranges::reverse(now_.processes[0].hosts[0].queue_pairs);
  host().queue_pairs[1].counted.numbers["acked_bytes"] = 2'000'000'000;
  host().queue_pairs[2].counted.numbers["in_flight"] = 70'000;
  EXPECT_EQ(first(Sort::kTransmit), "18r");
  EXPECT_EQ(first(Sort::kQueue), "16777214");
  EXPECT_EQ(first(Sort::kDrops), "17");
}

TEST_F(HostsTest, output_contains_no_control_characters) {
  host().name = "\x1b[2Jevil";
  host().info.texts["addresses"] = "\x1b]0;title\x07";
  host().queue_pairs[0].counted.texts["cc_state"] = "\x9b\n31m";
  for (const Line& line : render(now_, before_, {.width = 200})) {
    EXPECT_TRUE(std::ranges::none_of(line.text, [](char c) { return static_cast<unsigned char>(c) < 0x20; }))
        << line.text;
  }
}

TEST_F(HostsTest, json_contains_same_values) {
  const auto json = to_json(now_, before_)["processes"][0]["hosts"][0];
  EXPECT_EQ(json["name"], "client");
  EXPECT_EQ(json["addresses"], "10.0.0.1/24");
  EXPECT_EQ(json["queue_pair_count"], 3);
  EXPECT_EQ(json["states/RTS"], 3);
  EXPECT_EQ(json["per_second"]["port/tx_bytes"], 1.25e9);
  EXPECT_EQ(json["per_second"]["rp_cnp_handled"], 40.0);
  EXPECT_EQ(json["counts"]["np_cnp_sent"], 5);
  const auto& qp = json["queue_pairs"][0];
  EXPECT_EQ(qp["qpn"], 17);
  EXPECT_EQ(qp["type"], "RC");
  EXPECT_EQ(qp["algorithm"], "dcqcn");
  EXPECT_EQ(qp["rate"], 9'500'000'000U);
  EXPECT_TRUE(qp["window"].is_null()) << "no limit";
  EXPECT_EQ(qp["responses"], false);
  EXPECT_EQ(qp["per_second"]["acked_bytes"], 1e9);
  EXPECT_EQ(qp["per_second"]["losses"], 2.0);
  EXPECT_FALSE(qp["counts"].contains("rtt_ns"));
  EXPECT_EQ(json["queue_pairs"][1]["responses"], true);
}

}  // namespace
}  // namespace roci::top
