// roci-cc: lists congestion control algorithms, checks plugins, and replays recorded traces.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>

#include "base/os/standard_output.hpp"
#include "common/command_line.hpp"
#include "roci-cc/commands.hpp"
#include "roci/version.h"

namespace {

using namespace roci::cc_tool;  // NOLINT(google-build-using-namespace): main file of roci::cc_tool

constexpr const char* kListHelp =
    R"(Columns: what the algorithm decides, bytes of state per flow (at the sender, + at the receiver), a
description, and what it requires.

Exit status: 0, or 2 if a plugin cannot be loaded.)";

constexpr const char* kShowHelp =
    R"(Prints the algorithm's source, what it requires and decides, its parameters with default values and
ranges, and the states and reasons of changes that traces and counters contain.

Exit status: 0, or 2 if the algorithm is unknown or a plugin cannot be loaded.)";

constexpr const char* kCheckHelp =
    R"(Loads the file as a device does, and validates the default values with the plugin's check function.

Exit status: 0, or 1 if a device would reject the file.)";

constexpr const char* kReplayHelp =
    R"(The same events must result in the same decisions, bit for bit. Differences occur with another build
of a plugin, or with a plugin that keeps data outside its state. The first difference is printed. A flow
whose start record is not in the trace is skipped.

Exit status: 0 if all decisions match, 1 if one differs, 2 if the trace cannot be read or has no start
of a flow.)";

constexpr const char* kCsvHelp =
    R"(Prints a line per event to standard output: the event, the decision, and the names of state and
reason. The cell of a window or a rate without limit is empty. The column `path` contains
node:port:queue_bytes:sent_units:time_ns:rate per hop.

Exit status: 0, or 2 if the trace cannot be read.)";

constexpr const char* kTrace = "trace as JSON Lines; - for standard input";

int run(int argc, char** argv) {
  CLI::App app{"Lists and describes congestion control algorithms, checks plugins, and replays traces.",
               "roci-cc"};
  app.require_subcommand(1);
  app.set_version_flag("--version", "roci-cc " ROCI_VERSION, "print the version and exit");
  Options options;
  const auto with_plugins = [&options](CLI::App* command) {
    command->add_option("--plugin", options.plugins, "shared object with additional algorithms")
        ->type_name("FILE.so")
        ->allow_extra_args(false);
  };
  const auto with_markdown = [&options](CLI::App* command) {
    command->add_flag("--markdown", options.markdown, "print Markdown tables");
  };

  const auto command = [&app](const char* name, const char* what, const char* more) {
    CLI::App* made = app.add_subcommand(name, what);
    made->footer(more);  // not shown in the list of subcommands
    return made;
  };
  CLI::App* list = command("list", "Lists the algorithms", kListHelp);
  with_plugins(list);
  with_markdown(list);
  CLI::App* show =
      command("show", "Describes an algorithm: parameters, states and reasons of changes", kShowHelp);
  show->add_option("NAME", options.name, "name of the algorithm")->required()->type_name("");
  with_plugins(show);
  with_markdown(show);
  CLI::App* check = command("check", "Validates a shared object and lists its plugins", kCheckHelp);
  check->add_option("FILE.so", options.file, "shared object with plugins")->required()->type_name("");
  CLI::App* replay = command("replay", "Replays a trace and compares every decision", kReplayHelp);
  replay->add_option("TRACE", options.file, kTrace)->required()->type_name("");
  with_plugins(replay);
  CLI::App* csv = command("csv", "Prints a trace as CSV", kCsvHelp);
  csv->add_option("TRACE", options.file, kTrace)->required()->type_name("");
  with_plugins(csv);

  if (const auto done = roci::parse_command_line(app, "roci-cc", argc, argv, kUnusable)) return *done;
  if (list->parsed()) return run_list(options);
  if (show->parsed()) return run_show(options);
  if (check->parsed()) return run_check(options);
  return replay->parsed() ? run_replay(options) : run_csv(options);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return roci::checked_exit_status("roci-cc", run(argc, argv), kUnusable);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "roci-cc: %s\n", error.what());
    return kUnusable;
  }
}
