// What the program does; each returns its exit status.
#pragma once

#include <string>
#include <vector>

namespace roci::cc_tool {

enum Exit : int { kFine = 0, kDifferent = 1, kUnusable = 2 };

struct Options {
  std::string name;                  // of an algorithm
  std::string file;                  // a shared object or a trace
  std::vector<std::string> plugins;  // shared objects to load first
  bool markdown = false;
};

int run_list(const Options& options);
int run_show(const Options& options);
int run_check(const Options& options);
int run_replay(const Options& options);
int run_csv(const Options& options);

}  // namespace roci::cc_tool
