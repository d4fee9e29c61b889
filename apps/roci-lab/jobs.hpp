// The runs that a command line asks for, each with everything decided.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lab/scenario.hpp"

namespace roci::lab {

struct RunOptions {
  std::string file;
  std::vector<std::string> set;   // "path=value"
  std::vector<std::string> only;  // names of runs; empty: all
  uint32_t seeds = 1;
  unsigned jobs = 1;     // runs at a time
  unsigned threads = 0;  // of a run; 0: as many as there are CPUs for each
  std::string out;       // a folder; empty: "lab-" and the file's name
  bool real = false;     // in real time, and on real ports
  bool quiet = false;
};

struct Job {
  std::string name;   // in tables
  std::string place;  // its folder in the results' one; empty: itself
  RunSpec run;        // of the file's
  std::string seed;   // where there are several
  std::vector<ConfigChange> changes;

  // What makes it again.
  [[nodiscard]] std::string command(const RunOptions& options) const;
};

struct Plan {
  std::vector<RunSpec> runs;  // of the file, whether they are wanted or not
  std::vector<Job> jobs;
  std::vector<Expectation> expectations;
};

// Every job's scenario has been read once, so that what is wrong is known before anything runs.
Result<Plan> plan_jobs(const RunOptions& options);

}  // namespace roci::lab
