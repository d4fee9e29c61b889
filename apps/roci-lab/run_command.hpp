// roci-lab run: every run of a scenario file, with its results in files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace roci::lab {

struct RunOptions {
  std::string file;
  std::vector<std::string> set;   // "path=value"
  std::vector<std::string> only;  // names of runs; empty: all
  uint32_t seeds = 1;
  unsigned threads = 0;  // of a run; 0: as many as there are CPUs
  std::string out;       // a folder; empty: "lab-" and the file's name
  bool quiet = false;
};

// The exit status: 0, 1 for a run that failed, 2 for a scenario that is not right.
int run_command(const RunOptions& options);

}  // namespace roci::lab
