// The subcommands of roci-cc. Each function returns the exit status of the program.
#pragma once

#include <string>
#include <vector>

namespace roci::cc_tool {

enum Exit : int { kFine = 0, kDifferent = 1, kUnusable = 2 };

struct Options {
  std::string name;                  // algorithm name
  std::string file;                  // path of a shared object or a trace
  std::vector<std::string> plugins;  // shared objects to load before the subcommand
  bool markdown = false;
};

int run_list(const Options& options);
int run_show(const Options& options);
int run_check(const Options& options);
int run_replay(const Options& options);
int run_csv(const Options& options);

}  // namespace roci::cc_tool
