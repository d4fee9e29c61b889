// roci-top: live statistics of the hosts and switches of this machine.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <optional>
#include <thread>

#include "base/os/private_folder.hpp"
#include "base/os/standard_output.hpp"
#include "base/units.hpp"
#include "common/command_line.hpp"
#include "roci-top/output/json_lines.hpp"
#include "roci-top/output/live.hpp"
#include "roci-top/output/terminal.hpp"
#include "roci-top/tables/table.hpp"
#include "roci/version.h"
#include "telemetry/runtime_folder.hpp"

namespace roci::top {
namespace {

struct Options {
  bool once = false;
  bool json = false;
  double interval = 1;
  std::string prefix;
  std::optional<size_t> queue_pairs;
};

constexpr size_t kShownQueuePairs = 64;  // default
constexpr Nanos kShortInterval = 100ms;  // interval of the first activity samples

void print_table(const Snapshot& now, const Snapshot& before) {
  for (const Line& line : render(now, before, {.width = output_width()})) {
    const std::string_view text = line.text;
    const size_t end = text.find_last_not_of(' ') + 1;
    std::printf("%.*s\n", static_cast<int>(end), text.data());
  }
}

// Returns false if standard output cannot be written.
bool print_json(const Snapshot& now, const Snapshot& before) {
  // Names may contain invalid UTF-8.
  std::puts(to_json(now, before).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
  return flush_standard_output();
}

Error no_process_error(const Options& options, const std::filesystem::path& folder, size_t silent) {
  std::string sentence = "no Rocinante process found";
  if (!options.prefix.empty()) sentence += " whose DPDK prefix starts with '" + options.prefix + "'";
  if (silent > 0) sentence += " (" + std::to_string(silent) + " not responding)";
  return {sentence + " in " + folder.native() +
              "; processes of the same user have telemetry: programs started by roci-run; roci-switch, "
              "unless its file has 'eal: {telemetry: false}'; and roci-perf, if its file has "
              "'eal: {telemetry: true}'",
          ESRCH};
}

bool has_more_queue_pairs(const Snapshot& snapshot) {
  return std::ranges::any_of(snapshot.processes, [](const ProcessSample& process) {
    return std::ranges::any_of(process.hosts,
                               [](const HostSample& host) { return host.chosen < host.looked_at; });
  });
}

Status run(const Options& options) {
  const std::filesystem::path folder = dpdk_runtime_folder();
  // In a folder of another user, the sockets may be that user's.
  if (const auto opened = PrivateFolder::open(folder); !opened && opened.error().code != ENOENT)
    return fail("the folder " + opened.error().message, opened.error().code);
  Processes processes{folder, options.prefix,
                      options.queue_pairs.value_or(options.json ? kMaxLookedAt : kShownQueuePairs)};
  Snapshot before = processes.look();
  if (before.processes.empty()) return fail(no_process_error(options, folder, before.silent));
  const Nanos interval{static_cast<int64_t>(options.interval * 1e9)};
  if (!options.once && !options.json) return run_live(processes, std::move(before), interval);
  // The busiest queue pairs can only be determined from two samples.
  if (has_more_queue_pairs(before)) {
    std::this_thread::sleep_for(kShortInterval);
    before = processes.look();
  }
  for (;;) {
    std::this_thread::sleep_for(before.at + interval - steady_now());
    Snapshot now = processes.look();
    if (options.json) {
      if (!print_json(now, before)) return written_standard_output();
    } else {
      print_table(now, before);
    }
    if (options.once) return {};
    before = std::move(now);
  }
}

int main_(int argc, char** argv) {
  CLI::App app{
      "Monitors the hosts and switches of this machine: rates, queue pairs and their congestion control,\n"
      "queues, marks, drops with their reasons, pauses and notifications.\n"
      "Shows all processes of the same user that have endpoints on DPDK's telemetry socket: roci-switch,\n"
      "programs started by roci-run, and other roci-perf if their file has 'eal: {telemetry: true}'."};
  Options options;
  app.set_version_flag("--version", "roci-top " ROCI_VERSION, "print the version and exit");
  app.add_flag("--once", options.once, "print one table for one interval, for scripts");
  app.add_flag("--json", options.json, "print all counters and rates, one line of JSON per interval");
  app.add_option_function<std::string>(
         "--interval",
         [&options](const std::string& text) {
           const auto seconds = parse_number(text, 0.05, 3600);
           if (!seconds) throw CLI::ValidationError("--interval", seconds.error().message);
           options.interval = *seconds;
         },
         "interval, 0.05 to 3600 seconds [1]")
      ->type_name("SECONDS");
  app.add_option("--process", options.prefix,
                 "show only processes whose DPDK prefix starts with PREFIX, for example roci-1234")
      ->type_name("PREFIX");
  app.add_option("--queue-pairs", options.queue_pairs,
                 "show the N busiest queue pairs per host, 0 to 16384 [64; with --json all]")
      ->check(CLI::Range(size_t{0}, kMaxLookedAt).description(""))
      ->type_name("N");
  app.footer(
      "Keys: q quit, p pause, c show or hide classes, f show or hide queue pairs (flows), s sort, arrows "
      "scroll.\n"
      "Rates are means over the interval. The peak of a queue is that since the start of its switch. retx/s "
      "of\n"
      "hosts: retransmitted packets. Queue pairs: tx is acknowledged payload, \"cc Gb/s\" and window are the "
      "rate\n"
      "limit and window set by congestion control, and lost/s includes time-outs.");
  if (const auto done = parse_command_line(app, "roci-top", argc, argv)) return *done;
  if (const Status status = run(options); !status) {
    std::fprintf(stderr, "roci-top: %s\n", status.error().message.c_str());
    return 1;
  }
  return checked_exit_status("roci-top", 0, 1);
}

}  // namespace
}  // namespace roci::top

int main(int argc, char** argv) { return roci::top::main_(argc, argv); }
