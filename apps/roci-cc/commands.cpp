#include "roci-cc/commands.hpp"

#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>

#include "congestion/algorithms.hpp"
#include "congestion/built_in_profiles.hpp"
#include "congestion/profile.hpp"
#include "congestion/trace.hpp"
#include "roci-cc/describe.hpp"
#include "roci-cc/text_table.hpp"

namespace roci::cc_tool {
namespace {

int complain(const Error& error, Exit status) {
  std::fprintf(stderr, "roci-cc: %s\n", error.message.c_str());
  return status;
}

Status load(Algorithms& algorithms, const Options& options) {
  for (const std::string& path : options.plugins) ROCI_TRY(algorithms.load(path));
  return {};
}

Look look_of(const Options& options) { return {.markdown = options.markdown, .width = output_width()}; }

std::string counted(uint64_t count, const std::string& what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

Result<std::unique_ptr<RecordedTrace>> read_file(const Options& options, const Algorithms& algorithms) {
  const bool standard = options.file == "-";
  std::ifstream file;
  if (!standard) file.open(options.file);
  if (!standard && !file) return fail(options.file + ": " + std::strerror(errno), errno);
  auto trace = read_trace(standard ? std::cin : file, algorithms);
  if (!trace) return fail(trace.error().within(standard ? "standard input" : options.file));
  return trace;
}

}  // namespace

int run_list(const Options& options) {
  Algorithms algorithms;
  if (Status s = load(algorithms, options); !s) return complain(s.error(), kUnusable);
  std::cout << describe_all(algorithms.all(), look_of(options));
  return kFine;
}

int run_show(const Options& options) {
  Algorithms algorithms;
  if (Status s = load(algorithms, options); !s) return complain(s.error(), kUnusable);
  const BuiltInProfile* const profile = find_built_in_profile(options.name);
  auto plugin = algorithms.find(profile != nullptr ? profile->algorithm : options.name);
  if (!plugin) return complain(plugin.error(), kUnusable);
  if (profile != nullptr) {
    std::cout << describe(*profile, **plugin, look_of(options));
    return kFine;
  }
  std::cout << describe(**plugin, algorithms.origin(**plugin), look_of(options));
  return kFine;
}

int run_check(const Options& options) {
  Algorithms algorithms;
  if (Status s = algorithms.load(options.file); !s) return complain(s.error(), kDifferent);
  for (const roci_cc_plugin* plugin : algorithms.all()) {
    if (algorithms.origin(*plugin) != options.file) continue;
    const auto values = parameter_values(*plugin, {});
    const char* wrong = plugin->check == nullptr ? nullptr : plugin->check(nullptr, values->data());
    if (wrong != nullptr) {
      return complain({options.file + ": plugin '" + plugin->name + "' rejects its default values: " + wrong},
                      kDifferent);
    }
    std::cout << options.file << ": " << plugin->name << ": " << plugin->summary << "; "
              << counted(plugin->parameter_count, "parameter") << ", " << plugin->state_bytes
              << " bytes per flow\n";
  }
  return kFine;
}

int run_replay(const Options& options) {
  Algorithms algorithms;
  if (Status s = load(algorithms, options); !s) return complain(s.error(), kUnusable);
  auto trace = read_file(options, algorithms);
  if (!trace) return complain(trace.error(), kUnusable);
  const ReplayOutcome outcome = replay((*trace)->records);
  if (outcome.events == 0 && outcome.different == 0) {
    const std::string left = outcome.without == 0
                                 ? "it has no events"
                                 : "the start records of the flows of its " +
                                       counted(outcome.without, "event") + " were overwritten";
    return complain({options.file + ": nothing can be replayed: " + left}, kUnusable);
  }
  std::cout << counted(outcome.flows, "flow") << ", " << counted(outcome.events, "event") << ": ";
  if (outcome.different == 0) {
    std::cout << "all decisions match the trace\n";
  } else {
    std::cout << counted(outcome.different, "decision") << " differ\n"
              << "first difference: " << outcome.first << '\n';
  }
  if (outcome.without != 0) {
    std::cout << counted(outcome.without, "event")
              << " could not be replayed: the start records of their flows "
              << "were overwritten\n";
  }
  return outcome.different == 0 ? kFine : kDifferent;
}

int run_csv(const Options& options) {
  Algorithms algorithms;
  if (Status s = load(algorithms, options); !s) return complain(s.error(), kUnusable);
  auto trace = read_file(options, algorithms);
  if (!trace) return complain(trace.error(), kUnusable);
  write_trace_csv((*trace)->records, std::cout);
  return kFine;
}

}  // namespace roci::cc_tool
