#include "roci-perf/options/options.hpp"

#include <gtest/gtest.h>

#include "roci-perf/options/option_values.hpp"

namespace roci::perf {
namespace {

Result<ParsedOptions> parse(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "roci-perf");
  return parse_options(static_cast<int>(arguments.size()), arguments.data());
}

Options good(const std::vector<const char*>& arguments) {
  auto parsed = parse(arguments);
  EXPECT_TRUE(parsed) << parsed.error().message;
  return parsed ? parsed->options : Options{};
}

// Returns the error of a rejected command line, which must be one line.
std::string refusal(const std::vector<const char*>& arguments) {
  auto parsed = parse(arguments);
  if (parsed) return "(accepted)";
  EXPECT_EQ(parsed.error().message.find('\n'), std::string::npos) << parsed.error().message;
  return parsed.error().message;
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(Options, defaults_match_perftest) {
  const Options bw = good({"write", "bw", "--loopback"});
  EXPECT_EQ(bw.test.sizes, std::vector<uint64_t>{65536});
  EXPECT_EQ(bw.test.iterations, 5000U);
  EXPECT_EQ(bw.test.tx_depth, 128U);
  EXPECT_EQ(bw.tcp_port, 18515);
  EXPECT_EQ(bw.qp_timeout, 14);
  const Options lat = good({"send", "lat", "--loopback"});
  EXPECT_EQ(lat.test.sizes, std::vector<uint64_t>{2});
  EXPECT_EQ(lat.test.iterations, 1000U);
  EXPECT_EQ(lat.test.warm_up, 100U);
}

TEST(Options, parses_short_and_long_options) {
  const Options o = good({"write",
                          "bw",
                          "-d",
                          "c.yaml",
                          "-s",
                          "4K",
                          "-n",
                          "7",
                          "-q",
                          "3",
                          "-m",
                          "1024",
                          "-t",
                          "9",
                          "-p",
                          "99",
                          "-x",
                          "2",
                          "-I",
                          "64",
                          "-u",
                          "10",
                          "-l",
                          "4",
                          "-Q",
                          "3",
                          "--report-gbits",
                          "--retry-count",
                          "5",
                          "--rnr-retry",
                          "6",
                          "-T",
                          "104",
                          "--verify",
                          "--seed",
                          "5",
                          "localhost"});
  EXPECT_EQ(o.test.sizes, std::vector<uint64_t>{4096});
  EXPECT_EQ(o.test.iterations, 7U);
  EXPECT_EQ(o.test.queue_pairs, 3U);
  EXPECT_EQ(o.test.mtu, 1024U);
  EXPECT_EQ(o.test.tx_depth, 9U);
  EXPECT_EQ(o.tcp_port, 99);
  EXPECT_EQ(o.gid_index, 2);
  EXPECT_EQ(o.inline_size, 64U);
  EXPECT_EQ(o.qp_timeout, 10);
  EXPECT_EQ(o.post_list, 4U);
  EXPECT_EQ(o.cq_mod, 3U);
  EXPECT_TRUE(o.report_gbits);
  EXPECT_EQ(o.retry_count, 5);
  EXPECT_EQ(o.rnr_retry, 6);
  EXPECT_EQ(o.traffic_class, 104);
  EXPECT_TRUE(o.test.verify);
  EXPECT_EQ(o.test.seed, 5U);
  EXPECT_EQ(o.host, "localhost");
  EXPECT_FALSE(o.is_server());
  EXPECT_TRUE(o.given.contains("tx-depth"));
  EXPECT_FALSE(o.given.contains("rx-depth"));
  EXPECT_TRUE(good({"write", "bw", "--report_gbits", "--loopback"}).report_gbits);
}

TEST(Options, all_sizes_range_from_2_bytes_to_8_mib) {
  const Options o = good({"read", "bw", "--loopback", "-a"});
  EXPECT_EQ(o.test.sizes.size(), 23U);
  EXPECT_EQ(o.test.sizes.front(), 2U);
  EXPECT_EQ(o.test.sizes.back(), uint64_t{1} << 23);
}

TEST(Options, every_test_has_help_with_examples) {
  for (const char* verb : {"write", "read", "send"}) {
    for (const char* mode : {"bw", "lat"}) {
      auto parsed = parse({verb, mode, "--help"});
      ASSERT_TRUE(parsed);
      EXPECT_TRUE(has(parsed->text, "Examples:"));
      EXPECT_TRUE(has(parsed->text, "--verify"));
    }
  }
  EXPECT_TRUE(has(parse({"--help"})->text, "Exit status"));
  EXPECT_TRUE(has(parse({"--version"})->text, "roci-perf "));
}

// The help of every test fits into a terminal of 100 columns.
TEST(Options, help_fits_100_columns) {
  for (const std::vector<const char*>& what : {std::vector<const char*>{"--help"},
                                               {"write", "bw", "--help"},
                                               {"send", "lat", "--help"},
                                               {"read", "bw", "--help"}}) {
    const std::string text = parse(what)->text;
    size_t start = 0;
    for (size_t end; (end = text.find('\n', start)) != std::string::npos; start = end + 1) {
      EXPECT_LE(end - start, 100U) << text.substr(start, end - start);
    }
  }
}

TEST(Options, errors_name_option_value_and_limits) {
  EXPECT_EQ(refusal({"write", "bw", "--loopback", "-s", "0"}),
            "--size is \"0\"; allowed are sizes from 1 to 1G, such as 4096 or 64K");
  EXPECT_TRUE(has(refusal({"write", "bw", "--loopback", "-s", "abc"}), "--size is \"abc\""));
  EXPECT_TRUE(has(refusal({"write", "bw", "--loopback", "-s", "2G"}), "from 1 to 1G"));
  EXPECT_EQ(refusal({"write", "bw", "--loopback", "-m", "1500"}),
            "--mtu is \"1500\"; allowed are 256, 512, 1024, 2048 or 4096");
  EXPECT_EQ(refusal({"write", "bw", "--loopback", "-q", "0"}),
            "--qp is \"0\"; allowed are whole numbers from 1 to 100000");
  EXPECT_TRUE(has(refusal({"write", "bw", "--loopback", "-n", "-1"}), "--iters is \"-1\""));
  EXPECT_TRUE(has(refusal({"write", "bw", "--loopback", "-D", "nan"}), "--duration is \"nan\""));
  EXPECT_TRUE(has(refusal({"write", "bw", "--loopback", "-u", "32"}), "from 1 to 31"));
  EXPECT_TRUE(has(refusal({"write", "bw", "-d", "x", "--bind", "nowhere"}), "not an IP address"));
  EXPECT_TRUE(
      has(refusal({"write", "bw", "--loopback", "--extensions", "maybe"}), "not one of auto, on, off"));
}

TEST(Options, rejects_missing_and_conflicting_options) {
  EXPECT_TRUE(has(refusal({"write", "bw", "--loopback", "somehost"}), "excludes HOST (\"somehost\")"));
  EXPECT_TRUE(has(refusal({"write", "bw"}), "no port"));
  EXPECT_TRUE(has(refusal({"write", "bw", "--direct", "-d", "x"}), "--loopback"));
  EXPECT_TRUE(has(refusal({"write", "bw", "--loopback", "-d", "x"}), "--loopback"));
  EXPECT_TRUE(has(refusal({"write", "bw", "--loopback", "-a", "-s", "8"}), "--size"));
  EXPECT_TRUE(has(refusal({"write", "bw", "--loopback", "-n", "8", "-D", "1"}), "--iters"));
  EXPECT_TRUE(has(refusal({"write", "bw", "--loopback", "-t", "4", "-Q", "5"}), "--cq-mod is 5"));
  EXPECT_TRUE(has(refusal({"write", "bw", "--loopback", "-D", "2", "-f", "1"}), "--margin"));
  EXPECT_TRUE(has(refusal({"write", "bw", "--loopback", "--capture-packets", "5"}), "--capture FILE"));
  EXPECT_TRUE(has(refusal({"write", "bw", "--loopback", "--passive"}), "--peer"));
  EXPECT_TRUE(has(refusal({"fly", "bw"}), "fly"));
  EXPECT_TRUE(has(refusal({"write"}), "subcommand"));
  EXPECT_NE(refusal({}), "(accepted)");
}

TEST(Options, rejects_options_without_effect) {
  const auto refused = [](std::vector<const char*> more) {
    more.insert(more.begin(), {"write", "bw", "--loopback"});
    return refusal(more);
  };
  EXPECT_EQ(refused({"-t", "4", "-l", "5"}), "--post-list is 5; it must not exceed --tx-depth, 4");
  EXPECT_TRUE(has(refused({"-D", "1", "-w", "5"}), "--warm-up excludes --duration"));
  EXPECT_GT(good({"write", "lat", "--loopback", "-D", "1", "-w", "5"}).test.duration, 0);
  EXPECT_EQ(refused({"-p", "99"}), "--loopback excludes --port");
  EXPECT_EQ(refused({"--bind", "127.0.0.1"}), "--loopback excludes --bind");
  EXPECT_TRUE(has(refused({"--cc", "none", "--cc-set", "a=1"}), "no effect with --cc none"));
  EXPECT_TRUE(has(refused({"--cc", "window", "--cc-base-rtt", "5us"}), "no effect with --cc window"));
  EXPECT_EQ(refused({"--cc-base-rtt", "5us"}), "--cc-base-rtt requires --cc with --loopback");
  EXPECT_TRUE(has(refused({"--cc", "hpcc", "--cc-base-rtt", "never"}), "times up to 10s"));
  EXPECT_EQ(refused({"--cc-trace-events", "5"}), "--cc-trace-events requires --cc-trace FILE");
  EXPECT_TRUE(good({"write", "bw", "-d", "c", "--cc-base-rtt", "5us"}).congestion.base_rtt);
}

// A test rejects options of other tests: -q belongs to bandwidth, -H to latency, -r to SEND.
TEST(Options, rejects_options_of_other_tests) {
  EXPECT_TRUE(has(refusal({"write", "lat", "--loopback", "-q", "2"}), "-q"));
  EXPECT_TRUE(has(refusal({"write", "bw", "--loopback", "-H"}), "-H"));
  EXPECT_TRUE(has(refusal({"write", "bw", "--loopback", "-r", "5"}), "-r"));
  EXPECT_TRUE(has(refusal({"write", "bw", "--loopback", "--frobnicate"}), "--frobnicate"));
}

TEST(Options, validates_number_and_fields_of_peers) {
  const char* peer = "gid=10.0.0.2,qpn=17,psn=5,rkey=1,va=0x1000";
  EXPECT_EQ(good({"write", "bw", "-d", "c", "--peer", peer}).peers.size(), 1U);
  EXPECT_EQ(good({"write", "bw", "-d", "c", "-q", "2", "--peer", peer, "--peer", peer}).peers.size(), 2U);
  EXPECT_TRUE(has(refusal({"write", "bw", "-d", "c", "-q", "2", "--peer", peer}), "1 times for 2"));
  EXPECT_TRUE(has(refusal({"write", "bw", "-d", "c", "--peer", "gid=10.0.0.2,qpn=17,psn=5"}), "rkey"));
  EXPECT_TRUE(has(refusal({"write", "bw", "-d", "c", "--peer", "qpn=17"}), "gid is missing"));
  EXPECT_TRUE(has(refusal({"write", "bw", "-d", "c", "--peer", peer, "--verify"}), "--verify"));
  EXPECT_TRUE(has(refusal({"write", "bw", "-d", "c", "--peer", peer, "-a"}), "--all"));
  EXPECT_TRUE(has(refusal({"write", "bw", "-d", "c", "--peer", peer, "--passive"}), "--duration"));
}

TEST(Options, sizes_accept_binary_suffixes) {
  EXPECT_EQ(parse_size("64K").value(), 65536U);
  EXPECT_EQ(parse_size("8m").value(), uint64_t{8} << 20);
  EXPECT_EQ(parse_size("1G").value(), uint64_t{1} << 30);
  EXPECT_FALSE(parse_size("K"));
  EXPECT_FALSE(parse_size(""));
  EXPECT_FALSE(parse_size("1.5K"));
  EXPECT_FALSE(parse_size("99999999999999999999"));
  EXPECT_FALSE(parse_size("99999999999999999G"));
}

TEST(Options, parses_loss_cores_and_recovery) {
  const Options o = good({"write", "bw", "--loopback", "--direct", "--loss", "0.1%", "--cores", "2,5",
                          "--recovery", "selective", "--packets-per-ack", "1"});
  EXPECT_DOUBLE_EQ(o.loss, 0.001);
  EXPECT_EQ(o.cores, (std::vector<int>{2, 5}));
  EXPECT_EQ(o.selective_repeat, true);
  EXPECT_EQ(o.packets_per_ack, 1U);
  EXPECT_DOUBLE_EQ(good({"write", "bw", "--loopback", "--loss", "0.01"}).loss, 0.01);
  EXPECT_EQ(good({"send", "lat", "-d", "c.yaml", "--cores", "3"}).cores, std::vector<int>{3});
}

TEST(Options, rejects_invalid_loss_cores_and_recovery) {
  for (const char* loss : {"1", "100%", "-0.1", "often", "%", "nan"}) {
    EXPECT_TRUE(has(refusal({"write", "bw", "--loopback", "--loss", loss}), "such as 0.001")) << loss;
  }
  EXPECT_TRUE(has(refusal({"write", "bw", "-d", "c.yaml", "--loss", "1%"}), "--loopback"));
  EXPECT_TRUE(has(refusal({"write", "bw", "--loopback", "--cores", "1"}), "two CPUs"));
  EXPECT_TRUE(has(refusal({"write", "bw", "-d", "c.yaml", "--cores", "0,1"}), "one CPU"));
  EXPECT_TRUE(has(refusal({"write", "bw", "--loopback", "--cores", "0,"}), "CPU numbers"));
  EXPECT_TRUE(has(refusal({"write", "bw", "--loopback", "--recovery", "quick"}), "selective"));
  EXPECT_TRUE(has(refusal({"write", "bw", "--loopback", "--recovery", "selective", "--extensions", "off"}),
                  "--recovery selective"));
  EXPECT_TRUE(has(refusal({"write", "bw", "--loopback", "--packets-per-ack", "0"}), "from 1 to 1024"));
}

TEST(Options, parses_congestion_control_options) {
  const CongestionOptions c =
      good({"write", "bw", "--loopback", "--cc", "hpcc", "--cc-set", "eta=0.9", "--cc-set", "w_ai=80",
            "--cc-plugin", "a.so", "--cc-plugin", "b.so", "--cc-base-rtt", "5us", "--cc-line-rate", "25Gbps"})
          .congestion;
  EXPECT_EQ(c.profile, "hpcc");
  EXPECT_EQ(c.parameters, (std::map<std::string, double>{{"eta", 0.9}, {"w_ai", 80}}));
  EXPECT_EQ(c.plugins, (std::vector<std::string>{"a.so", "b.so"}));
  EXPECT_EQ(c.base_rtt, Nanos{5us});
  EXPECT_EQ(c.line_rate, BitsPerSec{25'000'000'000});

  EXPECT_TRUE(has(refusal({"write", "bw", "--loopback", "--cc", "hpcc", "--cc-set", "eta"}), "eta=0.95"));
  EXPECT_TRUE(has(refusal({"write", "bw", "--loopback", "--cc-set", "eta=1"}), "--cc"));
  EXPECT_TRUE(has(refusal({"write", "bw", "--loopback", "--cc-line-rate", "0"}), "must be above 0"));
  EXPECT_TRUE(has(refusal({"write", "bw", "--loopback", "--cc-cores", "1000"}), "from 0 to"));
}

// Values of the command line override those of the profile.
TEST(Options, parameter_values_create_a_separate_profile) {
  CongestionControlConfig control;
  control.profiles["mine"] = {"dcqcn", {{"rpg_gd", 12}, {"window", 1}}, Nanos{3us}, "none"};
  control.plugins = {"file.so"};
  CongestionOptions options;
  options.profile = "mine";
  options.parameters = {{"rpg_gd", 13}};
  options.plugins = {"line.so"};
  options.line_rate = BitsPerSec{10'000'000'000};
  options.apply(control);
  EXPECT_EQ(control.plugins, (std::vector<std::string>{"file.so", "line.so"}));
  EXPECT_EQ(control.line_rate, 10'000'000'000U);
  const CongestionProfile expected{"dcqcn", {{"rpg_gd", 13}, {"window", 1}}, Nanos{3us}, "none"};
  EXPECT_EQ(control.profiles.at(control.profile), expected);
  EXPECT_EQ(control.profiles.at("mine").parameters.at("rpg_gd"), 12) << "the file's own stays as it is";
}

}  // namespace
}  // namespace roci::perf
