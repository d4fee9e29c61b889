#include "roci-perf/options.hpp"

#include <sched.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>
#include <functional>
#include <limits>
#include <sstream>

#include "base/config.hpp"
#include "base/units.hpp"
#include "device/limits.hpp"

namespace roci::perf {
namespace {

constexpr const char* kOverview =
    R"(Measures bandwidth and latency of RDMA WRITE, READ and SEND over DPDK ports.)";

constexpr const char* kFooter = R"(
Examples:
  roci-perf write bw --loopback                hosts and switch in this process: no set-up
  roci-perf send lat --loopback --direct -H    latency without a switch, with a histogram
  roci-perf read bw --loopback -a --verify     every size from 2 bytes to 8 MiB, every byte checked
  roci-perf write lat --loopback --json        one JSON object for a script
  roci-perf write bw --loopback --direct --cores 0,1 --loss 0.1% --recovery selective
                                               a core for each host, and a wire that loses frames

  Two processes on two ports (the examples fit config/switch-memif.yaml):
    roci-switch --config config/switch-memif.yaml
    roci-perf write bw --config config/perf-server.yaml              the server waits ...
    roci-perf write bw --config config/perf-client.yaml localhost    ... and the client measures

Exit status: 0 all went well; 1 the test failed or could not run; 2 wrong options or configuration.)";

constexpr size_t kHelpColumn = 32;
constexpr size_t kHelpWidth = 100 - kHelpColumn;

// CLI11 indents the lines of a help text and leaves it to us where they end.
std::string wrapped(const std::string& text) {
  std::string lines;
  size_t length = 0;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const bool fits = length + 1 + word.size() <= kHelpWidth;
    if (length > 0) lines += fits ? ' ' : '\n';
    length = length > 0 && fits ? length + 1 + word.size() : word.size();
    lines += word;
  }
  return lines;
}

// The kind of an option's value and nothing else: which options exclude each other is said when it matters.
class HelpFormatter final : public CLI::Formatter {
 public:
  HelpFormatter() { column_width(kHelpColumn); }
  std::string make_option_opts(const CLI::Option* option) const override {
    const std::string type = option->get_type_name();
    return type.empty() || option->get_positional() ? "" : " " + type;
  }
};

// "-p,--port" -> "port"
std::string long_name(const std::string& names) {
  const size_t start = names.find("--") + 2;
  return names.substr(start, names.find(',', start) - start);
}

// CLI11 would say that a test is missing, not that it has never heard of this one.
Status check_test_name(int argc, const char* const* argv) {
  if (argc < 2 || argv[1][0] == '-') return {};
  const std::string_view operation = argv[1];
  if (operation != "write" && operation != "read" && operation != "send") {
    return fail("there is no test \"" + std::string(operation) + "\"; the tests are write, read and send");
  }
  if (argc < 3 || argv[2][0] == '-') return {};
  const std::string_view mode = argv[2];
  if (mode == "bw" || mode == "lat") return {};
  return fail("there is no test \"" + std::string(operation) + " " + std::string(mode) +
              "\"; write bw or lat behind " + std::string(operation));
}

Result<uint64_t> parse_whole(std::string_view text) {
  uint64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (text.empty() || error != std::errc{} || stop != end) return fail("not a whole number");
  return value;
}

Result<double> parse_number(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || end != text.c_str() + text.size() || !std::isfinite(value)) return fail("not a number");
  return value;
}

// Builds one leaf command ("write bw"); every leaf fills the same Options.
class Command {
 public:
  Command(CLI::App& app, Options& options, Operation operation, Mode mode)
      : app_(app), o_(options), operation_(operation), mode_(mode) {}

  void add_all() {
    app_.add_option("HOST", o_.host, "The server's host name or address; without it we are the server")
        ->option_text(" ");
    add_test();
    add_transport();
    add_place();
    add_congestion();
    add_output();
  }

 private:
  static constexpr const char* kTest = "The test";
  static constexpr const char* kQueuePair = "Queue pairs";
  static constexpr const char* kPlace = "Where the packets go";
  static constexpr const char* kCongestion = "Congestion control";
  static constexpr const char* kOutput = "Output";

  [[nodiscard]] bool latency() const { return mode_ == Mode::kLatency; }

  // Options are taken as text so that every refusal is a sentence of ours that names the limits.
  CLI::Option* text(const std::string& names, const std::string& help, const char* type, const char* group,
                    std::function<Status(const std::string&)> take) {
    const std::string longest = long_name(names);
    auto* option = app_.add_option_function<std::string>(
        names,
        [this, longest, take = std::move(take)](const std::string& value) {
          o_.given.insert(longest);
          if (Status status = take(value); !status) {
            throw CLI::ValidationError("--" + longest + " is \"" + value + "\"; " + status.error().message);
          }
        },
        wrapped(help));
    option->type_name(type)->group(group);
    return option;
  }

  template <class T>
  CLI::Option* number(const std::string& names, T& target, uint64_t low, uint64_t high,
                      const std::string& help, const char* group) {
    return text(names, help, "N", group, [&target, low, high](const std::string& value) -> Status {
      const auto whole = parse_whole(value);
      if (!whole || *whole < low || *whole > high) {
        return fail("write a whole number from " + std::to_string(low) + " to " + std::to_string(high));
      }
      target = static_cast<T>(*whole);
      return {};
    });
  }

  CLI::Option* seconds(const std::string& names, double& target, double low, double high,
                       const std::string& help, const char* group) {
    return text(names, help, "S", group, [&target, low, high](const std::string& value) -> Status {
      const auto parsed = parse_number(value);
      if (!parsed || *parsed < low || *parsed > high) {
        char sentence[80];
        std::snprintf(sentence, sizeof sentence, "write a number of seconds from %g to %g", low, high);
        return fail(sentence);
      }
      target = *parsed;
      return {};
    });
  }

  CLI::Option* flag(const std::string& names, bool& target, const std::string& help, const char* group) {
    const std::string longest = long_name(names);
    return app_
        .add_flag_callback(
            names,
            [this, &target, longest] {
              target = true;
              o_.given.insert(longest);
            },
            wrapped(help))
        ->group(group);
  }

  void add_test() {
    Parameters& t = o_.test;
    auto* size =
        text("-s,--size",
             "Message size in bytes; K, M, G are allowed [" + std::string(latency() ? "2" : "65536") + "]",
             "SIZE", kTest, [&t](const std::string& value) -> Status {
               const auto parsed = parse_size(value);
               if (!parsed || *parsed < 1 || *parsed > kLargestMessage) {
                 return fail("write a size from 1 to 1G, for example 4096 or 64K");
               }
               t.sizes = {*parsed};
               return {};
             });
    bool& all = all_;
    flag("-a,--all", all, "All sizes from 2 to 2^23 bytes, each twice the one before", kTest)->excludes(size);
    auto* iters = text("-n,--iters",
                       "Messages of each queue pair [" + std::to_string(default_iterations()) +
                           (latency() ? "]" : ", at most 1 GiB]"),
                       "N", kTest, [&t](const std::string& value) -> Status {
                         const auto whole = parse_whole(value);
                         if (!whole || *whole < 1 || *whole > 1'000'000'000) {
                           return fail("write a whole number from 1 to 1000000000");
                         }
                         t.iterations = *whole;
                         t.iterations_given = true;
                         return {};
                       });
    auto* duration = seconds("-D,--duration", t.duration, 0.1, 86400,
                             "Run for S seconds instead of counting messages", kTest)
                         ->excludes(iters);
    number("-w,--warm-up", t.warm_up, 0, 1'000'000,
           "Messages before the measurement [" + std::string(latency() ? "100" : "0") + "]", kTest);
    if (!latency()) {
      seconds("-f,--margin", o_.margin, 0, 3600,
              "With -D: seconds at both ends that do not count [S/10, at most 2]", kTest)
          ->needs(duration);
    }
    flag("--verify", t.verify, "Check every byte that arrives (the figures include filling and checking)",
         kTest);
    number("--seed", t.seed, 0, std::numeric_limits<uint64_t>::max(),
           "Seed of the bytes of --verify and of our PSNs [random PSNs]", kTest);
  }

  void add_transport() {
    Parameters& t = o_.test;
    if (!latency()) {
      number("-q,--qp", t.queue_pairs, 1, kMostQueuePairs, "Queue pairs [1]", kQueuePair);
      number("-t,--tx-depth", t.tx_depth, 1, kDeepestQueue, "Messages outstanding on each queue pair [128]",
             kQueuePair);
      number("-l,--post_list,--post-list", o_.post_list, 1, 1024, "Work requests per post_send() [1]",
             kQueuePair);
      number("-Q,--cq-mod", o_.cq_mod, 1, kDeepestQueue,
             "One completion per N messages [a quarter of tx-depth]", kQueuePair);
    }
    if (operation_ == Operation::kSend) {
      number("-r,--rx-depth", t.rx_depth, 1, kDeepestQueue, "Receives posted on each queue pair [512]",
             kQueuePair);
    }
    if (operation_ == Operation::kRead) {
      number("-o,--outs", o_.outstanding_reads, 1, 255,
             "READs under way on each queue pair [what the device can]", kQueuePair);
    } else {
      number("-I,--inline_size,--inline-size", o_.inline_size, 0, 1024,
             "Messages up to N bytes are copied at posting [0]", kQueuePair);
    }
    text("-m,--mtu", "Path MTU: 256, 512, 1024, 2048 or 4096 [what both ports carry]", "BYTES", kQueuePair,
         [&t](const std::string& value) -> Status {
           const auto whole = parse_whole(value);
           if (!whole ||
               (*whole != 256 && *whole != 512 && *whole != 1024 && *whole != 2048 && *whole != 4096)) {
             return fail("a path MTU is 256, 512, 1024, 2048 or 4096");
           }
           t.mtu = static_cast<uint32_t>(*whole);
           return {};
         });
    number("-x,--gid-index", o_.gid_index, 0, 255, "Our GID's index [1: the first configured address]",
           kQueuePair);
    number("-u,--qp-timeout", o_.qp_timeout, 1, 31, "Time-out before a retry: 4.096 us x 2^N [14: 67 ms]",
           kQueuePair);
    number("--retry-count", o_.retry_count, 0, 7, "Retries after a time-out [7]", kQueuePair);
    number("--rnr-retry", o_.rnr_retry, 0, 7, "Retries when the peer has no receive; 7 is no limit [7]",
           kQueuePair);
    number("-T,--tos", o_.traffic_class, 0, 255, "Traffic class of our packets: DSCP x 4 + ECN [0]",
           kQueuePair);
  }

  void add_place() {
    auto* loopback =
        flag("--loopback", o_.loopback, "Both hosts and a switch between them in this process", kPlace);
    flag("--direct", o_.direct, "With --loopback: no switch", kPlace)->needs(loopback);
    text(
        "--loss",
        "With --loopback: lose this part of the frames, each by chance and in both directions; 0.001 or 0.1% "
        "[0]",
        "PART", kPlace,
        [this](const std::string& value) -> Status {
          auto part = parse_probability(value);
          if (!part) return fail(part.error());
          o_.loss = *part;
          return {};
        })
        ->needs(loopback);
    text("--cores",
         "CPU to stay on; in a loopback two, the client's and the server's, like 0,1 [wherever the system "
         "puts us]",
         "CPU[,CPU]", kPlace, [this](const std::string& value) { return take_cores(value); });
    text("-d,--config", "YAML file with our port and addresses", "FILE", kPlace,
         [this](const std::string& value) -> Status {
           o_.config_file = value;
           return {};
         })
        ->excludes(loopback);
    number("-p,--port", o_.tcp_port, 1, 65535,
           "TCP port of the server, to exchange queue pair numbers [18515]", kPlace);
    text(
        "--extensions",
        "Say more than RoCEv2 to a peer that understands it: auto, on or off [off in a loopback, else as the "
        "configuration file says]",
        "MODE", kPlace, [this](const std::string& value) -> Status {
          auto mode = one_of<ExtensionMode>({{"auto", ExtensionMode::kAuto},
                                             {"on", ExtensionMode::kOn},
                                             {"off", ExtensionMode::kOff}})(value);
          if (!mode) return fail(mode.error());
          o_.extensions = *mode;
          return {};
        });
    text("--recovery",
         "What a loss costs: go-back-n sends everything behind it again; selective only what is lost, an "
         "extension that the other side must have [go-back-n, or as the configuration file says]",
         "MODE", kPlace, [this](const std::string& value) -> Status {
           auto selective = one_of<bool>({{"go-back-n", false}, {"selective", true}})(value);
           if (!selective) return fail(selective.error());
           o_.selective_repeat = *selective;
           return {};
         });
    text(
        "--packets-per-ack",
        "One acknowledgement stands for at most N packets that arrived together; 1 acknowledges each [64, or "
        "as the configuration file says]",
        "N", kPlace, [this](const std::string& value) -> Status {
          const auto whole = parse_whole(value);
          if (!whole || *whole < 1 || *whole > 1024) return fail("write a whole number from 1 to 1024");
          o_.packets_per_ack = static_cast<uint32_t>(*whole);
          return {};
        });
    text("--bind", "Where the server listens [127.0.0.1]; 0.0.0.0 lets other machines in", "ADDRESS", kPlace,
         [this](const std::string& value) -> Status {
           if (auto ip = IpAddress::parse(value); !ip) return fail(ip.error());
           o_.bind = value;
           return {};
         });
    seconds("--host-timeout", o_.host_timeout, 0.1, 86400,
            "How long the client tries to reach HOST and its port [10]; how long the server waits [no limit]",
            kPlace);
    app_.add_option_function<std::vector<std::string>>(
            "--peer",
            [this](const std::vector<std::string>& values) {
              o_.given.insert("peer");
              for (const std::string& value : values) {
                auto peer = QueuePairAddress::parse(value);
                if (!peer) throw CLI::ValidationError("--peer: " + peer.error().message);
                o_.peers.push_back(*peer);
              }
            },
            wrapped("A queue pair set up by hand on a stack that speaks no exchange: "
                    "gid=A,qpn=N,psn=N[,rkey=N,va=N]; once for each -q"))
        ->type_name("SPEC")
        ->group(kPlace)
        ->excludes(loopback);
    flag("--passive", o_.passive, "With --peer: the peer does the work, for -D seconds", kPlace);
    text("--wait-file", "With --peer: start when FILE exists, not on Enter", "FILE", kPlace,
         [this](const std::string& value) -> Status {
           o_.wait_file = value;
           return {};
         });
  }

  void add_congestion() {
    CongestionOptions& c = o_.congestion;
    auto* chosen = text(
        "--cc",
        "The queue pairs' congestion control: an algorithm (roci-cc list), a profile of the configuration "
        "file, or none [as the file says; none in a loopback]",
        "NAME", kCongestion, [&c](const std::string& value) -> Status {
          c.profile = value;
          return {};
        });
    app_.add_option_function<std::vector<std::string>>(
            "--cc-set",
            [this, &c](const std::vector<std::string>& values) {
              o_.given.insert("cc-set");
              for (const std::string& value : values) {
                const size_t equals = value.find('=');
                const auto number = parse_number(equals == std::string::npos ? "" : value.substr(equals + 1));
                if (equals == 0 || !number)
                  throw CLI::ValidationError("--cc-set is \"" + value +
                                             "\"; write a parameter and its value, like eta=0.95");
                c.parameters[value.substr(0, equals)] = *number;
              }
            },
            wrapped("A parameter's value, in the parameter's unit; several times for several"))
        ->type_name("NAME=N")
        ->group(kCongestion)
        ->needs(chosen);
    text("--cc-base-rtt",
         "Round trip of a full packet on idle links, like 5us, for algorithms that ask for it", "TIME",
         kCongestion, [&c](const std::string& value) -> Status {
           auto time = parse_duration(value);
           if (!time) return fail(time.error());
           c.base_rtt = *time;
           return {};
         });
    text("--cc-cores", "Threads that algorithms have to themselves; 0: they run where the packets are [0]",
         "N", kCongestion, [&c](const std::string& value) -> Status {
           const auto whole = parse_whole(value);
           if (!whole || *whole > kMaxControlCores)
             return fail("write a whole number from 0 to " + std::to_string(kMaxControlCores));
           c.cores = static_cast<uint32_t>(*whole);
           return {};
         });
    flag("--cc-report", c.report, "Show at the end what it did with each flow", kCongestion);
    text(
        "--cc-trace",
        "Write the algorithms' events and decisions to FILE: CSV if it is called so, else for roci-cc replay",
        "FILE", kCongestion, [&c](const std::string& value) -> Status {
          c.trace_file = value;
          return {};
        });
    number("--cc-trace-events", c.trace_events, 1, 1U << 22, "The last N events are kept [100000]",
           kCongestion);
  }

  Status take_cores(const std::string& value) {
    o_.cores.clear();
    for (size_t start = 0; start <= value.size();) {
      const size_t comma = std::min(value.find(',', start), value.size());
      const auto cpu = parse_whole(std::string_view(value).substr(start, comma - start));
      if (!cpu || *cpu >= CPU_SETSIZE)
        return fail("write CPU numbers as the system counts them, like 0 or 0,1");
      o_.cores.push_back(static_cast<int>(*cpu));
      start = comma + 1;
    }
    return {};
  }

  void add_output() {
    if (!latency()) {
      flag("--report_gbits,--report-gbits", o_.report_gbits,
           "Gb/sec (10^9 bits) instead of MB/sec (2^20 bytes)", kOutput);
    } else {
      flag("-H,--report-histogram", o_.report_histogram, "Show how the samples are distributed", kOutput);
      flag("-U,--report-unsorted", o_.report_unsorted, "Print every sample in the order of time", kOutput);
    }
    flag("--json", o_.json, "One JSON object on standard output and nothing else", kOutput);
    text("--capture", "Write the first packets of our port to FILE (pcapng)", "FILE", kOutput,
         [this](const std::string& value) -> Status {
           o_.capture_file = value;
           return {};
         });
    number("--capture-packets", o_.capture_packets, 1, 100'000'000, "How many packets [1000]", kOutput);
  }

 public:
  [[nodiscard]] uint64_t default_iterations() const {
    if (latency()) return 1000;
    return operation_ == Operation::kWrite ? 5000 : 1000;
  }

  // What the command line left open, and what only shows when it is seen as a whole.
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
      return fail("--margin is counted at both ends, so twice as much must be less than --duration");
    }
    if (o_.loopback && !o_.host.empty()) {
      return fail("--loopback keeps everything in this process, so it takes no HOST (\"" + o_.host + "\")");
    }
    if (!o_.loopback && o_.config_file.empty()) {
      return fail(
          "which port? Give --loopback for a test inside this process, or --config FILE for a port of its "
          "own");
    }
    if (o_.cq_mod > t.tx_depth) {
      return fail("--cq-mod is " + std::to_string(o_.cq_mod) + ", but only --tx-depth " +
                  std::to_string(t.tx_depth) + " messages are outstanding, so no completion would ever come");
    }
    if (!o_.cores.empty() && o_.cores.size() != (o_.loopback ? 2U : 1U)) {
      return fail(o_.loopback
                      ? "--cores in a loopback wants two CPUs, the client's and the server's, like 0,1"
                      : "--cores wants one CPU; the other side has a --cores of its own");
    }
    if (o_.selective_repeat.value_or(false) && o_.extensions == ExtensionMode::kOff) {
      return fail("--recovery selective is an extension, so it does not go with --extensions off");
    }
    if (o_.given.contains("capture-packets") && o_.capture_file.empty()) {
      return fail("--capture-packets needs --capture FILE");
    }
    ROCI_TRY(finish_peers());
    return validate(t);
  }

 private:
  Status finish_peers() {
    const Parameters& t = o_.test;
    if (o_.peers.empty()) {
      if (o_.passive || !o_.wait_file.empty()) {
        return fail(std::string(o_.passive ? "--passive" : "--wait-file") + " belongs to --peer");
      }
      return {};
    }
    if (!o_.host.empty())
      return fail("--peer names the other side by hand, so it takes no HOST (\"" + o_.host + "\")");
    if (o_.peers.size() != t.queue_pairs) {
      return fail("--peer is given " + std::to_string(o_.peers.size()) + " times for " +
                  std::to_string(t.queue_pairs) + " queue pairs (--qp); each needs one");
    }
    if (all_)
      return fail("--all sets up new queue pairs for each size, which a peer set up by hand cannot follow");
    if (t.verify) return fail("--verify needs a roci-perf on the other side, so it does not go with --peer");
    if (o_.passive && t.duration == 0)
      return fail("--passive needs --duration, because nobody tells us when the peer is done");
    if (!o_.passive && t.operation != Operation::kSend) {
      for (const QueuePairAddress& peer : o_.peers) {
        if (peer.rkey == 0)
          return fail(std::string("a ") + to_string(t.operation) + " needs the peer's rkey and va in --peer");
      }
    }
    return {};
  }

  CLI::App& app_;
  Options& o_;
  Operation operation_;
  Mode mode_;
  bool all_ = false;
};

// CLI11 puts names of options in front of its sentences in several ways; ours come without.
std::string clean(const CLI::ParseError& error) {
  std::string text = error.what();
  while (!text.empty() && (text.back() == '\n' || text.back() == '.')) text.pop_back();
  const size_t newline = text.find('\n');
  return text.substr(0, newline);
}

}  // namespace

Result<uint64_t> parse_size(std::string_view text) {
  unsigned shift = 0;
  if (!text.empty()) {
    switch (text.back()) {
      case 'k':
      case 'K':
        shift = 10;
        break;
      case 'm':
      case 'M':
        shift = 20;
        break;
      case 'g':
      case 'G':
        shift = 30;
        break;
      default:
        break;
    }
    if (shift != 0) text.remove_suffix(1);
  }
  auto value = parse_whole(text);
  if (!value) return value;
  if (*value > (std::numeric_limits<uint64_t>::max() >> shift)) return fail("too large");
  return *value << shift;
}

Result<double> parse_probability(const std::string& text) {
  const bool percent = text.ends_with('%');
  auto value = parse_number(percent ? text.substr(0, text.size() - 1) : text);
  if (value && percent) *value /= 100;
  if (!value || *value < 0 || *value >= 1) {
    return fail("write a part of one, like 0.001, or of a hundred, like 0.1%; it must be less than all");
  }
  return value;
}

Result<ParsedOptions> parse_options(int argc, const char* const* argv) {
  ROCI_TRY(check_test_name(argc, argv));
  ParsedOptions parsed;
  CLI::App app{kOverview, "roci-perf"};
  app.set_version_flag("--version", "roci-perf " ROCI_VERSION);
  app.set_help_flag("-h,--help", "Show this help; that of a test: roci-perf write bw --help");
  app.formatter(std::make_shared<HelpFormatter>());  // the tests inherit it
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
                           : operation == Operation::kRead ? "Latency: the time of a READ"
                                                           : "Latency: half the round trip of a ping-pong");
      leaf->footer(kFooter);
      leaf->set_help_flag("-h,--help", "Show this help");
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
