// roci-top: live statistics of the hosts and switches of this machine.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <optional>
#include <thread>

#include "roci-top/json_lines.hpp"
#include "roci-top/live.hpp"
#include "roci-top/table.hpp"
#include "roci-top/terminal.hpp"
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
constexpr Nanos kShortLook = 100ms;      // interval of the first activity samples

void print_table(const Snapshot& now, const Snapshot& before) {
  for (const Line& line : render(now, before, {.width = output_width()})) {
    const std::string_view text = line.text;
    const size_t end = text.find_last_not_of(' ') + 1;
    std::printf("%.*s\n", static_cast<int>(end), text.data());
  }
}

// Returns false if the reader has closed the pipe.
bool print_json(const Snapshot& now, const Snapshot& before) {
  // Names may contain invalid UTF-8.
  std::puts(to_json(now, before).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
  return std::fflush(stdout) == 0;
}

Error nobody(const Options& options, const std::filesystem::path& folder, size_t silent) {
  std::string sentence = "no process of roci answers";
  if (!options.prefix.empty()) sentence += " whose DPDK prefix begins with '" + options.prefix + "'";
  if (silent > 0) sentence += ", and " + std::to_string(silent) + " are silent";
  return {sentence + " in " + folder.native() +
              "; a roci-switch of the same user does, unless its file says 'eal: {telemetry: false}', and a "
              "roci-perf "
              "whose file says 'eal: {telemetry: true}'",
          ESRCH};
}

bool has_more_queue_pairs(const Snapshot& snapshot) {
  return std::ranges::any_of(snapshot.processes, [](const ProcessSeen& process) {
    return std::ranges::any_of(process.hosts,
                               [](const HostSeen& host) { return host.chosen < host.looked_at; });
  });
}

Status run(const Options& options) {
  const std::filesystem::path folder = dpdk_runtime_folder();
  Processes processes{folder, options.prefix,
                      options.queue_pairs.value_or(options.json ? kMostLookedAt : kShownQueuePairs)};
  Snapshot before = processes.look();
  if (before.processes.empty()) return fail(nobody(options, folder, before.silent));
  const Nanos interval{static_cast<int64_t>(options.interval * 1e9)};
  if (!options.once && !options.json) return run_live(processes, std::move(before), interval);
  // The busiest queue pairs can only be determined from two samples.
  if (has_more_queue_pairs(before)) {
    std::this_thread::sleep_for(kShortLook);
    before = processes.look();
  }
  for (;;) {
    std::this_thread::sleep_for(before.at + interval - steady_now());
    Snapshot now = processes.look();
    if (options.json) {
      if (!print_json(now, before)) return fail("standard output takes no more", EPIPE);
    } else {
      print_table(now, before);
    }
    if (options.once) return {};
    before = std::move(now);
  }
}

int main_(int argc, char** argv) {
  CLI::App app{
      "What the hosts and switches on this machine do, live: rates, queue pairs and their congestion "
      "control,\n"
      "queues, marks, drops and why, pauses, notifications.\n"
      "Shows every process of this user that answers on DPDK's telemetry socket, as roci-switch does, and\n"
      "roci-perf whose file says 'eal: {telemetry: true}'."};
  Options options;
  app.add_flag("--once", options.once, "one table of one interval, for scripts");
  app.add_flag("--json", options.json, "all counters and their rates, one line of JSON each interval");
  app.add_option("--interval", options.interval, "seconds between two looks")
      ->check(CLI::Range(0.05, 3600.0))
      ->capture_default_str();
  app.add_option("--process", options.prefix, "only processes whose DPDK prefix begins so, like roci-1234")
      ->type_name("PREFIX");
  app.add_option("--queue-pairs", options.queue_pairs,
                 "of each host so many, those with most packets; 0 asks for none [64; with --json all]")
      ->check(CLI::Range(size_t{0}, kMostLookedAt))
      ->type_name("N");
  app.footer(
      "Keys: q quits, p pauses, c shows and hides classes, f queue pairs (flows), s sorts, the arrows "
      "scroll.\n"
      "Rates are means over the interval; a queue's peak is that since its switch started. Of hosts, again/s "
      "is\n"
      "packets sent again. Of queue pairs, tx is payload that has arrived, \"at Gb/s\" and window are what\n"
      "congestion control allows, and lost/s counts time-outs too.");
  CLI11_PARSE(app, argc, argv);
  if (const Status status = run(options); !status) {
    std::fprintf(stderr, "roci-top: %s\n", status.error().message.c_str());
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace roci::top

int main(int argc, char** argv) { return roci::top::main_(argc, argv); }
