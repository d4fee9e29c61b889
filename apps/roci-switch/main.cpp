// roci-switch: a software switch between DPDK ports, from a configuration file.
#include <fcntl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdio>

#include "base/os/standard_output.hpp"
#include "common/command_line.hpp"
#include "roci-switch/crash_notice_sender.hpp"
#include "roci-switch/ready_file.hpp"
#include "roci-switch/switch_process.hpp"
#include "roci/version.h"

namespace roci {
namespace {

constexpr Nanos kUsersPeriod = 500ms;  // between two checks for connected processes

struct Options {
  std::string config;
  bool check = false;
  Nanos duration = kNever;
  Nanos stats = kNever;
  Nanos linger = kNever;
  std::string ready_file;
};

// Tracks whether the switch is used: by a connected process, or by one that has touched the ready file.
class Users {
 public:
  Users(const SwitchProcess& process, ReadyFile& ready, Nanos linger, Nanos now)
      : process_(process), ready_(ready), linger_(linger), last_(now) {}

  // Returns when the switch will have been unused for the time `linger`, if it stays unused.
  Nanos look(Nanos now) {
    const bool touched = ready_.was_touched();
    if (process_.has_clients() || touched) last_ = now;
    return last_ + linger_;
  }
  // Withdraws the ready file. False if a process uses the switch again.
  [[nodiscard]] bool leave() { return ready_.withdraw(); }

 private:
  const SwitchProcess& process_;
  ReadyFile& ready_;
  const Nanos linger_;
  Nanos last_;
};

// Distinguishes the two meanings of SIGHUP: reload of the configuration, or loss of the controlling terminal. It means
// the latter if the process had a terminal and has none now.
class Terminal {
 public:
  Terminal() : had_(is_there()) {}
  [[nodiscard]] bool was_closed() const { return had_ && !is_there(); }

 private:
  static bool is_there() {
    const int fd = open("/dev/tty", O_RDONLY | O_NOCTTY | O_CLOEXEC);
    if (fd >= 0) close(fd);
    return fd >= 0;
  }
  bool had_;
};

bool hangups_are_ignored() {
  struct sigaction action {};
  return sigaction(SIGHUP, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;  // as set by nohup
}

void reload(SwitchProcess& process, const std::string& path) {
  if (const auto applied = process.reload(); applied) {
    std::printf("roci-switch: '%s' reloaded %s: %s\n", process.name().c_str(), path.c_str(),
                applied->c_str());
    flush_standard_output();
  } else {
    std::fprintf(stderr, "roci-switch: %s\n", applied.error().message.c_str());
  }
}

// The main loop. `signals` are blocked in all threads; this thread waits for them. Prints a table every `stats`. Returns
// false if the terminal was closed, which then does not receive the last table.
bool serve(const Options& options, const sigset_t& signals, SwitchProcess& process, ReadyFile& ready,
           SwitchReport& report) {
  const Terminal terminal;
  const bool outlives_terminal = hangups_are_ignored();
  const Nanos begin = monotonic_now();
  const Nanos end = options.duration == kNever ? kNever : begin + options.duration;
  report.start(begin);
  Nanos next_report = options.stats == kNever ? kNever : begin + options.stats;
  Users users{process, ready, options.linger, begin};
  CrashNoticeSender crash_notices{process};
  for (;;) {
    const Nanos now = monotonic_now();
    if (now >= end) return true;
    Nanos next_look = process.shares_memory() ? now + kUsersPeriod : kNever;
    process.release_slots();
    if (options.linger != kNever) {
      const Nanos alone_until = users.look(now);
      if (now >= alone_until && users.leave()) {
        std::printf("roci-switch: '%s' exits: no process is connected\n", process.name().c_str());
        return true;
      }
      next_look = std::min(alone_until, now + kUsersPeriod);
    }
    if (now >= next_report) {
      report.print(stdout, now);
      // One table after a time without processor time. Signals are read after each table.
      next_report = std::max(next_report, now) + options.stats;
      if (const Status written = written_standard_output(); !written) {
        std::fprintf(stderr, "roci-switch: '%s' prints no more tables: %s\n", process.name().c_str(),
                     written.error().message.c_str());
        next_report = kNever;
      }
    }
    const Nanos next_words = crash_notices.work(now);
    const Nanos wait =
        std::max(Nanos{0}, std::min({end, next_report, next_look, next_words, now + Nanos{1h}}) - now);
    const timespec span{static_cast<time_t>(wait.count() / 1'000'000'000),
                        static_cast<long>(wait.count() % 1'000'000'000)};
    const int signal = sigtimedwait(&signals, nullptr, &span);
    if (signal <= 0) continue;
    if (signal != SIGHUP) return true;
    if (!outlives_terminal && terminal.was_closed()) return false;
    reload(process, options.config);
  }
}

Status run(const Options& options) {
  auto file = read_switch_file(options.config);
  if (!file) return fail(file.error());
  for (const std::string& warning : warnings(file->sw))
    std::fprintf(stderr, "roci-switch: warning: %s: %s\n", options.config.c_str(), warning.c_str());
  if (options.check) {
    std::printf("%s: switch '%s' with %zu ports: correct\n", options.config.c_str(), file->sw.name.c_str(),
                file->sw.ports.size());
    return written_standard_output();
  }

  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals, signal);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);  // before threads are created, which inherit the mask
  std::signal(SIGPIPE, SIG_IGN);                  // a closed pipe on standard output does not end the network

  auto process = SwitchProcess::start(std::move(*file), options.config);
  if (!process) return fail(process.error());
  ReadyFile ready;
  if (!options.ready_file.empty()) ROCI_TRY(ready.write(options.ready_file));
  std::printf("roci-switch: '%s' is ready: %zu ports\n", (*process)->name().c_str(),
              (*process)->port_count());
  flush_standard_output();

  SwitchReport report = (*process)->report();
  const bool has_output = serve(options, signals, **process, ready, report);
  (*process)->stop();
  report.print_total(stdout, monotonic_now());
  return has_output ? written_standard_output() : Status{};
}

// Parses seconds, or a time with its unit.
Result<Nanos> parse_span(const std::string& text) {
  constexpr double kMaxSeconds = 1e9;
  if (const auto seconds = parse_number(text, 0, kMaxSeconds))
    return Nanos{static_cast<int64_t>(*seconds * 1e9)};
  return parse_duration(text);
}

// CLI11 expects an error text, or an empty string. The sum of a span and the clock must not overflow.
CLI::Validator is_span_from(Nanos least, const char* least_text) {
  constexpr Nanos kMost = 24h * 36'500;
  return CLI::Validator{[=](const std::string& text) {
                          const auto span = parse_span(text);
                          if (!span) return span.error().message;
                          if (*span >= least && *span <= kMost) return std::string{};
                          return "'" + text + "' is not a time from " + least_text + " to 876000h";
                        },
                        ""};
}

int main_(int argc, char** argv) {
  CLI::App app{
      "Software switch between DPDK ports: learning bridge with VLANs, static routing, and traffic classes "
      "with ECN marking, bandwidth shares (ETS) and PFC."};
  Options options;
  std::string duration, stats, linger;
  app.add_option("--config", options.config, "configuration file (YAML)")->required()->type_name("FILE");
  app.set_version_flag("--version", "roci-switch " ROCI_VERSION, "print the version and exit");
  app.add_flag("--check", options.check, "validate the configuration file and exit");
  app.add_option("--duration", duration, "stop after this time, in seconds or such as 5min")
      ->type_name("TIME")
      ->check(is_span_from(Nanos{1}, "1ns"));
  app.add_option("--stats", stats,
                 "print a table of the ports at this interval, in seconds or such as 500ms; at least 10ms")
      ->type_name("TIME")
      ->check(is_span_from(10ms, "10ms"));
  app.add_option(
         "--linger", linger,
         "stop after this time without a process connected by memif or shared memory; touching the ready "
         "file restarts the time")
      ->type_name("TIME")
      ->check(is_span_from(Nanos{1}, "1ns"));
  app.add_option("--ready-file", options.ready_file, "create this file when all ports are open")
      ->type_name("PATH");
  app.footer(
      "SIGINT and SIGTERM stop the switch, which then prints its counters. SIGHUP reloads the file without "
      "losing\n"
      "a frame: the marking and drop curves of classes, and the faults of ports where they are enabled. A "
      "file\n"
      "that changes anything else is rejected as a whole. roci-top shows the counters. They are also "
      "endpoints\n"
      "of DPDK's telemetry socket (dpdk-telemetry.py, /roci/switch/...), unless eal.telemetry is false.");
  if (const auto done = parse_command_line(app, "roci-switch", argc, argv)) return *done;
  if (!duration.empty()) options.duration = *parse_span(duration);
  if (!linger.empty()) options.linger = *parse_span(linger);
  if (!stats.empty()) options.stats = *parse_span(stats);

  if (const Status status = run(options); !status) {
    std::fprintf(stderr, "roci-switch: %s\n", status.error().message.c_str());
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace roci

int main(int argc, char** argv) { return roci::main_(argc, argv); }
