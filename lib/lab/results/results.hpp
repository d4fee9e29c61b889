// Result files of a run:
//
//   summary.json   numbers of the run; identical for the same scenario, byte for byte
//   results.h5     columns of numbers (HDF5, compressed): time series, and results of each flow
//   run.json       execution: file, command, version, mode, seconds, packet-hops; in real time also delays and ports
//
// A run can be read back from them, for reports and comparisons.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "base/result.hpp"
#include "lab/execution/experiment.hpp"

namespace roci::lab {

// Data of run.json that are not measured.
struct RunInfo {
  std::string name;     // of the run within its file
  std::string command;  // that repeats the run
  unsigned threads = 1;
};

// Creates the folder if it does not exist.
Status write_results(const std::string& folder, const Scenario& scenario, const RunInfo& info,
                     const Measurements& of);

struct StoredFlow {
  uint64_t bytes = 0;
  Nanos start{0};    // since the start of the traffic
  double ideal = 0;  // minimum duration in ns
};

// Results, as far as reports require them.
struct StoredRun {
  nlohmann::ordered_json summary, run;
  Nanos bin{0};
  Series queue_most, queue_mean, goodput;
  std::vector<StoredFlow> flows;
};
// Files of a results folder as JSON binary values by name, for transfer to another process.
Result<nlohmann::ordered_json> read_files(const std::string& folder);
Status write_files(const std::string& folder, const nlohmann::ordered_json& files);

Result<StoredRun> read_results(const std::string& folder);

}  // namespace roci::lab
