// roci-cc: lists congestion control algorithms, checks plugins, and replays recorded traces.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>

#include "roci-cc/commands.hpp"

namespace {

using namespace roci::cc_tool;  // NOLINT(google-build-using-namespace): main file of roci::cc_tool

constexpr const char* kListHelp =
    R"(Of each: what it decides, how many bytes a flow of it takes (at the sending end, + at the receiving
end), what it is, and what it cannot do without.

Exit status: 0, or 2 for a plugin that cannot be loaded.)";

constexpr const char* kShowHelp =
    R"(That is what it says about itself: its source, what it needs and decides, its parameters with their
standard values and ranges, and the states and reasons that traces and counters name.

Exit status: 0, or 2 for an algorithm that there is not or a plugin that cannot be loaded.)";

constexpr const char* kCheckHelp =
    R"(The file is loaded as a device would load it, and its standard values are put to its own test.

Exit status: 0, or 1 for one that would be refused.)";

constexpr const char* kReplayHelp =
    R"(The same events must give the same decisions, bit for bit. Another build of a plugin, or one that keeps
something outside its state, shows here, with the first event that came out another way. A flow whose
beginning is not in the trace any more is left out.

Exit status: 0 all the same, 1 a difference, 2 a trace that cannot be read or has no beginning of a flow.)";

constexpr const char* kCsvHelp =
    R"(To the standard output: a line for each event, with what was told, what was decided, and names for
states and reasons. The cell of a window or a rate without limit is empty. The column `path` has
node:port:queue_bytes:sent_units:time_ns:rate for each hop.

Exit status: 0, or 2 for a trace that cannot be read.)";

constexpr const char* kTrace = "a trace as JSON Lines; - is the standard input";

int run(int argc, char** argv) {
  CLI::App app{"Lists and shows congestion control algorithms, checks plugins, runs traces again.",
               "roci-cc"};
  app.require_subcommand(1);
  Options options;
  const auto with_plugins = [&options](CLI::App* command) {
    command->add_option("--plugin", options.plugins, "a shared object with further algorithms")
        ->type_name("FILE.so")
        ->allow_extra_args(false);
  };
  const auto with_markdown = [&options](CLI::App* command) {
    command->add_flag("--markdown", options.markdown, "as tables for a page in Markdown");
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
      command("show", "Shows what an algorithm is, its parameters, states and reasons", kShowHelp);
  show->add_option("NAME", options.name, "of an algorithm")->required()->type_name("");
  with_plugins(show);
  with_markdown(show);
  CLI::App* check =
      command("check", "Says which plugins a shared object has, or what is wrong with it", kCheckHelp);
  check->add_option("FILE.so", options.file, "a shared object of plugins")->required()->type_name("");
  CLI::App* replay =
      command("replay", "Runs a trace through its algorithms again and compares every decision", kReplayHelp);
  replay->add_option("TRACE", options.file, kTrace)->required()->type_name("");
  with_plugins(replay);
  CLI::App* csv = command("csv", "Writes a trace as a table", kCsvHelp);
  csv->add_option("TRACE", options.file, kTrace)->required()->type_name("");
  with_plugins(csv);

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kFine : kUnusable;
  }
  if (list->parsed()) return run_list(options);
  if (show->parsed()) return run_show(options);
  if (check->parsed()) return run_check(options);
  return replay->parsed() ? run_replay(options) : run_csv(options);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "roci-cc: %s\n", error.what());
    return kUnusable;
  }
}
