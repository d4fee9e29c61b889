// The runs that a command line selects, with all their parameters.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lab/scenario/scenario.hpp"

namespace roci::lab {

struct RunOptions {
  std::string file;
  std::vector<std::string> set;   // "path=value"
  std::vector<std::string> only;  // names of runs; empty: all
  uint32_t seeds = 1;
  unsigned jobs = 1;     // concurrent runs
  unsigned threads = 0;  // per run; 0: number of CPUs divided by `jobs`
  std::string out;       // output folder; empty: "lab-" and the file's name
  bool real = false;     // real time and real ports
  bool quiet = false;
  bool ns3_results = false;  // also write results in the formats of HPCC's ns-3 simulator
};

struct Job {
  std::string name;    // in tables
  std::string folder;  // subfolder of the output folder; empty: the output folder
  RunSpec run;         // run as specified in the file
  std::string seed;    // empty unless there is more than one seed
  std::vector<ConfigChange> changes;

  // The command line that repeats this job.
  [[nodiscard]] std::string command(const RunOptions& options) const;
};

struct Plan {
  std::vector<RunSpec> runs;  // all runs of the file, including those not selected
  std::vector<Job> jobs;
  std::vector<Expectation> expectations;
};

// Reads and validates the scenario of every job, so that errors are reported before the first run.
Result<Plan> plan_jobs(const RunOptions& options);

}  // namespace roci::lab
