#include "roci-perf/options/options.hpp"

#include <sched.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <limits>

#include "base/config.hpp"
#include "base/units.hpp"
#include "device/host/limits.hpp"
#include "roci-perf/options/command_options.hpp"
#include "roci-perf/options/option_values.hpp"

namespace roci::perf {
namespace {

constexpr const char* kOverview =
    R"(Measures bandwidth and latency of RDMA WRITE, READ and SEND over DPDK ports.)";

constexpr const char* kFooter = R"(
Examples:
  roci-perf write bw --loopback                hosts and switch in this process, without setup
  roci-perf send lat --loopback --direct -H    latency without a switch, with a histogram
  roci-perf read bw --loopback -a --verify     all sizes from 2 bytes to 8 MiB, every byte verified
  roci-perf write lat --loopback --json        one JSON object for a script
  roci-perf write bw --loopback --direct --cores 0,1 --loss 0.1% --recovery selective
                                               a core per host, and a link that loses frames

  Two processes on two ports of a switch:
    roci-switch --config config/switch-memif.yaml
    roci-perf write bw --config config/perf-server.yaml              server
    roci-perf write bw --config config/perf-client.yaml localhost    client, which measures

  The same in a network of this machine, without configuration files:
    roci-run roci-perf write bw
    roci-run roci-perf write bw localhost

Exit status: 0 on success; 1 if the test failed or could not run; 2 for invalid options or
configuration; 130 after an interrupt.)";

// Without this check CLI11 would report a missing subcommand for an unknown test.
Status check_test_name(int argc, const char* const* argv) {
  if (argc < 2 || argv[1][0] == '-') return {};
  const std::string_view operation = argv[1];
  if (operation != "write" && operation != "read" && operation != "send") {
    return fail("unknown test \"" + std::string(operation) + "\"; allowed are write, read and send");
  }
  if (argc < 3 || argv[2][0] == '-') return {};
  const std::string_view mode = argv[2];
  if (mode == "bw" || mode == "lat") return {};
  return fail("unknown test \"" + std::string(operation) + " " + std::string(mode) +
              "\"; allowed are bw or lat after " + std::string(operation));
}

// Builds one leaf command ("write bw"). Every leaf command fills the same Options object.
class Command {
 public:
  Command(CLI::App& app, Options& options, Operation operation, Mode mode)
      : app_(app), add_(app, options.given), o_(options), operation_(operation), mode_(mode) {}

  void add_all() {
    app_.add_option("HOST", o_.host, "Host name or address of the server; without it, run as the server")
        ->option_text(" ");
    add_test();
    add_transport();
    add_place();
    add_congestion_options(add_, o_.congestion);
    add_output();
  }

 private:
  static constexpr const char* kTest = "Test";
  static constexpr const char* kQueuePair = "Queue pairs";
  static constexpr const char* kPlace = "Network";
  static constexpr const char* kOutput = "Output";

  [[nodiscard]] bool latency() const { return mode_ == Mode::kLatency; }

  void add_test() {
    Parameters& t = o_.test;
    auto* size = add_.text(
        "-s,--size",
        "Message size in bytes; K, M, G are allowed [" + std::string(latency() ? "2" : "65536") + "]", "SIZE",
        kTest, [&t](const std::string& value) -> Status {
          const auto parsed = parse_size(value);
          if (!parsed || *parsed < 1 || *parsed > kLargestMessage) {
            return fail("allowed are sizes from 1 to 1G, such as 4096 or 64K");
          }
          t.sizes = {*parsed};
          return {};
        });
    bool& all = all_;
    add_.flag("-a,--all", all, "All powers of two from 2 to 2^23 bytes", kTest)->excludes(size);
    auto* iters = add_.text("-n,--iters",
                            "Messages per queue pair [" + std::to_string(default_iterations()) +
                                (latency() ? "]" : ", or fewer: a round transfers about 1 GiB]"),
                            "N", kTest, [&t](const std::string& value) -> Status {
                              const auto whole = parse_whole(value);
                              if (!whole || *whole < 1 || *whole > 1'000'000'000) {
                                return fail("allowed are whole numbers from 1 to 1000000000");
                              }
                              t.iterations = *whole;
                              t.iterations_given = true;
                              return {};
                            });
    auto* duration = add_.seconds("-D,--duration", t.duration, 0.1, 86400,
                                  "Run for S seconds instead of a number of messages", kTest)
                         ->excludes(iters);
    add_.number("-w,--warm-up", t.warm_up, 0, 1'000'000,
                "Messages before the measurement [" + std::string(latency() ? "100" : "0") + "]", kTest);
    if (!latency()) {
      add_.seconds("-f,--margin", o_.margin, 0, 3600,
                   "With -D: seconds at the start and at the end that are not measured [S/10, at most 2]",
                   kTest)
          ->needs(duration);
    }
    add_.flag("--verify", t.verify, "Verify every received byte (results include filling and verification)",
              kTest);
    add_.number("--seed", t.seed, 0, std::numeric_limits<uint64_t>::max(),
                "Seed of the data of --verify, of the initial PSNs and of the frames that --loss drops "
                "[random PSNs and drops]",
                kTest);
  }

  void add_transport() {
    Parameters& t = o_.test;
    if (!latency()) {
      add_.number("-q,--qp", t.queue_pairs, 1, kMaxQueuePairs, "Queue pairs [1]", kQueuePair);
      add_.number("-t,--tx-depth", t.tx_depth, 1, kDeepestQueue, "Outstanding messages per queue pair [128]",
                  kQueuePair);
      add_.number("-l,--post_list,--post-list", o_.post_list, 1, 1024, "Work requests per post_send() [1]",
                  kQueuePair);
      add_.number("-Q,--cq-mod", o_.cq_mod, 1, kDeepestQueue,
                  "One completion per N messages [a quarter of tx-depth]", kQueuePair);
    }
    if (operation_ == Operation::kSend) {
      add_.number("-r,--rx-depth", t.rx_depth, 1, kDeepestQueue,
                  "Posted receive requests per queue pair [512]", kQueuePair);
    }
    if (operation_ == Operation::kRead) {
      add_.number("-o,--outs", o_.outstanding_reads, 1, 255,
                  "Outstanding READs per queue pair [maximum of the device]", kQueuePair);
    } else {
      add_.number("-I,--inline_size,--inline-size", o_.inline_size, 0, 1024,
                  "Send messages of up to N bytes inline [0]", kQueuePair);
    }
    add_.text("-m,--mtu", "Path MTU: 256, 512, 1024, 2048 or 4096 [maximum of both ports]", "BYTES",
              kQueuePair, [&t](const std::string& value) -> Status {
                const auto whole = parse_whole(value);
                if (!whole ||
                    (*whole != 256 && *whole != 512 && *whole != 1024 && *whole != 2048 && *whole != 4096)) {
                  return fail("allowed are 256, 512, 1024, 2048 or 4096");
                }
                t.mtu = static_cast<uint32_t>(*whole);
                return {};
              });
    add_.number("-x,--gid-index", o_.gid_index, 0, 255,
                "Index of the local GID [1: the first configured address]", kQueuePair);
    add_.number("-u,--qp-timeout", o_.qp_timeout, 1, 31, "Time-out of a retry: 4.096 us x 2^N [14: 67 ms]",
                kQueuePair);
    add_.number("--retry-count", o_.retry_count, 0, 7, "Retries after a time-out [7]", kQueuePair);
    add_.number("--rnr-retry", o_.rnr_retry, 0, 7,
                "Retries if the peer has no receive request; 7: no limit [7]", kQueuePair);
    add_.number("-T,--tos", o_.traffic_class, 0, 255, "Traffic class of sent packets: DSCP x 4 + ECN [0]",
                kQueuePair);
  }

  void add_place() {
    auto* loopback =
        add_.flag("--loopback", o_.loopback, "Run both hosts and a switch in this process", kPlace);
    add_.flag("--direct", o_.direct, "With --loopback: no switch", kPlace)->needs(loopback);
    add_.text("--loss",
              "With --loopback: fraction of frames to drop at random in each direction, such as 0.001 or "
              "0.1% [0]",
              "PART", kPlace,
              [this](const std::string& value) -> Status {
                auto part = parse_probability(value);
                if (!part) return fail(part.error());
                o_.loss = *part;
                return {};
              })
        ->needs(loopback);
    add_.text(
        "--cores",
        "CPU to run on; with --loopback two, of client and server, such as 0,1 [selected by the system]",
        "CPU[,CPU]", kPlace, [this](const std::string& value) { return take_cores(value); });
    add_.text("-d,--config", "YAML file with port and addresses", "FILE", kPlace,
              [this](const std::string& value) -> Status {
                o_.config_file = value;
                return {};
              })
        ->excludes(loopback);
    add_.number("-p,--port", o_.tcp_port, 1, 65535,
                "TCP port of the server, for the exchange of queue pair numbers [18515]", kPlace);
    add_.text("--extensions",
              "Wire extensions to RoCEv2: auto, on or off [with --loopback off, or auto with --cc; otherwise "
              "set by the configuration file]",
              "MODE", kPlace, [this](const std::string& value) -> Status {
                auto mode = one_of<ExtensionMode>({{"auto", ExtensionMode::kAuto},
                                                   {"on", ExtensionMode::kOn},
                                                   {"off", ExtensionMode::kOff}})(value);
                if (!mode) return fail(mode.error());
                o_.extensions = *mode;
                return {};
              });
    add_.text("--recovery",
              "Loss recovery: go-back-n; or selective, which retransmits only lost packets and is an "
              "extension that the peer must support [go-back-n, or set by the configuration file]",
              "MODE", kPlace, [this](const std::string& value) -> Status {
                auto selective = one_of<bool>({{"go-back-n", false}, {"selective", true}})(value);
                if (!selective) return fail(selective.error());
                o_.selective_repeat = *selective;
                return {};
              });
    add_.text("--packets-per-ack",
              "Maximum number of packets received together that one acknowledgment covers [64, or set by "
              "the configuration file]",
              "N", kPlace, [this](const std::string& value) -> Status {
                const auto whole = parse_whole(value);
                if (!whole || *whole < 1 || *whole > 1024)
                  return fail("allowed are whole numbers from 1 to 1024");
                o_.packets_per_ack = static_cast<uint32_t>(*whole);
                return {};
              });
    add_.text("--bind", "Address on which the server listens [127.0.0.1]; 0.0.0.0 for other machines",
              "ADDRESS", kPlace, [this](const std::string& value) -> Status {
                if (auto ip = IpAddress::parse(value); !ip) return fail(ip.error());
                o_.bind = value;
                return {};
              });
    add_.seconds("--host-timeout", o_.host_timeout, 0.1, 86400,
                 "Time-out of the client for the connection [10]; of the server for a client [no limit]",
                 kPlace);
    add_.texts("--peer",
               "Queue pair of a peer that does not use the protocol of roci-perf: "
               "gid=A,qpn=N,psn=N[,rkey=N,va=N]; once per -q",
               "SPEC", kPlace,
               [this](const std::string& value) -> Status {
                 auto peer = QueuePairAddress::parse(value);
                 if (!peer) return fail(peer.error());
                 o_.peers.push_back(*peer);
                 return {};
               })
        ->excludes(loopback);
    add_.flag("--passive", o_.passive, "With --peer: respond to requests of the peer for -D seconds", kPlace);
    add_.text("--wait-file", "With --peer: start when FILE exists, not on Enter", "FILE", kPlace,
              [this](const std::string& value) -> Status {
                o_.wait_file = value;
                return {};
              });
  }

  Status take_cores(const std::string& value) {
    o_.cores.clear();
    for (size_t start = 0; start <= value.size();) {
      const size_t comma = std::min(value.find(',', start), value.size());
      const auto cpu = parse_whole(std::string_view(value).substr(start, comma - start));
      if (!cpu || *cpu >= CPU_SETSIZE) return fail("allowed are CPU numbers, such as 0 or 0,1");
      o_.cores.push_back(static_cast<int>(*cpu));
      start = comma + 1;
    }
    return {};
  }

  void add_output() {
    if (!latency()) {
      add_.flag("--report_gbits,--report-gbits", o_.report_gbits,
                "Gb/sec (10^9 bits) instead of MB/sec (2^20 bytes)", kOutput);
    } else {
      add_.flag("-H,--report-histogram", o_.report_histogram, "Print a histogram of the samples", kOutput);
      add_.flag("-U,--report-unsorted", o_.report_unsorted, "Print all samples in chronological order",
                kOutput);
    }
    add_.flag("--json", o_.json, "Print only one JSON object to standard output", kOutput);
    add_.text("--capture", "Write the first packets of the port to FILE (pcapng)", "FILE", kOutput,
              [this](const std::string& value) -> Status {
                o_.capture_file = value;
                return {};
              });
    add_.number("--capture-packets", o_.capture_packets, 1, 100'000'000,
                "Number of packets to capture [1000]", kOutput);
  }

 public:
  [[nodiscard]] uint64_t default_iterations() const {
    if (latency()) return 1000;
    return operation_ == Operation::kWrite ? 5000 : 1000;
  }

  // Values set by roci-run in the environment. Options of the command line have precedence.
  void read_environment() {
    if (o_.loopback) return;
    if (const char* file = secure_getenv("ROCI_STATS"); file != nullptr) o_.stats_file = file;
    if (!o_.config_file.empty()) return;
    if (const char* file = secure_getenv("ROCI_CONFIG"); file != nullptr) o_.config_file = file;
    if (const char* net = secure_getenv("ROCI_NET"); net != nullptr) o_.net_folder = net;
  }

  // Sets defaults that depend on other options, and validates combinations of options.
  Status finish() {
    Parameters& t = o_.test;
    t.operation = operation_;
    t.mode = mode_;
    if (all_) {
      t.sizes.clear();
      for (unsigned power = 1; power <= 23; ++power) t.sizes.push_back(uint64_t{1} << power);
    } else if (!o_.given.contains("size")) {
      t.sizes = {latency() ? uint64_t{2} : uint64_t{65536}};
    }
    if (!t.iterations_given) t.iterations = default_iterations();
    if (latency() && !o_.given.contains("warm-up")) t.warm_up = 100;
    if (o_.margin >= 0 && 2 * o_.margin >= t.duration) {
      return fail("--margin applies to start and end; twice the margin must be less than --duration");
    }
    if (o_.loopback && !o_.host.empty()) {
      return fail("--loopback excludes HOST (\"" + o_.host + "\")");
    }
    read_environment();
    if (!o_.loopback && o_.config_file.empty() && o_.net_folder.empty()) {
      return fail(
          "no port; use --loopback for a test in this process, --config FILE for a port, or start roci-perf "
          "with roci-run");
    }
    if (o_.cq_mod > t.tx_depth) {
      return fail("--cq-mod is " + std::to_string(o_.cq_mod) + "; it must not exceed --tx-depth, " +
                  std::to_string(t.tx_depth) + ", or no completion is generated");
    }
    if (o_.post_list > t.tx_depth) {
      return fail("--post-list is " + std::to_string(o_.post_list) + "; it must not exceed --tx-depth, " +
                  std::to_string(t.tx_depth));
    }
    if (!latency() && t.duration > 0 && o_.given.contains("warm-up")) {
      return fail("--warm-up excludes --duration, whose start --margin excludes from the measurement");
    }
    for (const char* option : {"port", "bind"}) {
      if (o_.loopback && o_.given.contains(option))
        return fail(std::string("--loopback excludes --") + option);
    }
    ROCI_TRY(o_.congestion.finish(o_.loopback));
    if (!o_.cores.empty() && o_.cores.size() != (o_.loopback ? 2U : 1U)) {
      return fail(o_.loopback ? "--cores with --loopback requires two CPUs, of client and server, such as 0,1"
                              : "--cores requires one CPU; the peer has its own --cores");
    }
    if (o_.selective_repeat.value_or(false) && o_.extensions == ExtensionMode::kOff) {
      return fail("--recovery selective is an extension and excludes --extensions off");
    }
    if (o_.given.contains("capture-packets") && o_.capture_file.empty()) {
      return fail("--capture-packets requires --capture FILE");
    }
    ROCI_TRY(finish_peers());
    return validate(t);
  }

 private:
  Status finish_peers() {
    const Parameters& t = o_.test;
    if (o_.peers.empty()) {
      if (o_.passive || !o_.wait_file.empty()) {
        return fail(std::string(o_.passive ? "--passive" : "--wait-file") + " requires --peer");
      }
      return {};
    }
    if (!o_.host.empty()) return fail("--peer excludes HOST (\"" + o_.host + "\")");
    if (o_.peers.size() != t.queue_pairs) {
      return fail("--peer is given " + std::to_string(o_.peers.size()) + " times for " +
                  std::to_string(t.queue_pairs) + " queue pairs (--qp); one per queue pair is required");
    }
    if (all_) return fail("--all excludes --peer, since it creates new queue pairs for each size");
    if (t.verify) return fail("--verify excludes --peer, since it requires roci-perf at the peer");
    if (o_.passive && t.duration == 0)
      return fail("--passive requires --duration, since the peer does not report its end");
    if (!o_.passive && t.operation != Operation::kSend) {
      for (const QueuePairAddress& peer : o_.peers) {
        if (peer.rkey == 0)
          return fail(std::string("a ") + to_string(t.operation) +
                      " requires the peer's rkey and va in --peer");
      }
    }
    return {};
  }

  CLI::App& app_;
  CommandOptions add_;
  Options& o_;
  Operation operation_;
  Mode mode_;
  bool all_ = false;
};

// The first line of a CLI11 message, without periods at the end.
std::string clean(const CLI::ParseError& error) {
  std::string text = error.what();
  while (!text.empty() && (text.back() == '\n' || text.back() == '.')) text.pop_back();
  const size_t newline = text.find('\n');
  return text.substr(0, newline);
}

}  // namespace

Result<ParsedOptions> parse_options(int argc, const char* const* argv) {
  ROCI_TRY(check_test_name(argc, argv));
  ParsedOptions parsed;
  CLI::App app{kOverview, "roci-perf"};
  app.set_version_flag("--version", "roci-perf " ROCI_VERSION);
  app.set_help_flag("-h,--help", "Print this help; help of a test: roci-perf write bw --help");
  app.formatter(std::make_shared<HelpFormatter>());  // inherited by the subcommands
  app.get_formatter()->label("SUBCOMMAND", "TEST");
  app.footer(kFooter);
  app.require_subcommand(1);
  std::vector<std::unique_ptr<Command>> commands;
  std::vector<CLI::App*> leaves;
  for (const Operation operation : {Operation::kWrite, Operation::kRead, Operation::kSend}) {
    const std::string verb = to_string(operation);
    CLI::App* group = app.add_subcommand(
        verb, operation == Operation::kWrite  ? "RDMA WRITE: one side writes into the other's memory"
              : operation == Operation::kRead ? "RDMA READ: one side reads the other's memory"
                                              : "SEND: one side sends, the other has posted receives");
    group->require_subcommand(1);
    for (const Mode mode : {Mode::kBandwidth, Mode::kLatency}) {
      CLI::App* leaf = group->add_subcommand(
          to_string(mode), mode == Mode::kBandwidth ? "Bandwidth and message rate, many messages outstanding"
                           : operation == Operation::kRead
                               ? "Latency: the time of a READ"
                               : "Latency: half the round-trip time of a ping-pong");
      leaf->footer(kFooter);
      leaf->set_help_flag("-h,--help", "Print this help");
      commands.push_back(std::make_unique<Command>(*leaf, parsed.options, operation, mode));
      commands.back()->add_all();
      leaves.push_back(leaf);
    }
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    const CLI::App* shown = &app;
    std::string before;  // "roci-perf write"
    while (!shown->get_subcommands().empty()) {
      before += (before.empty() ? "" : " ") + shown->get_name();
      shown = shown->get_subcommands().front();
    }
    parsed.text = shown->help(before);
    return parsed;
  } catch (const CLI::CallForVersion& version) {
    parsed.text = std::string(version.what()) + "\n";
    return parsed;
  } catch (const CLI::ParseError& error) {
    return fail(clean(error));
  }
  for (size_t i = 0; i < leaves.size(); ++i) {
    if (leaves[i]->parsed()) ROCI_TRY(commands[i]->finish());
  }
  return parsed;
}

}  // namespace roci::perf
