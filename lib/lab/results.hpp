// The results of a run in files:
//
//   summary.json   what it comes down to; the same for the same scenario, byte for byte
//   results.h5     columns of numbers (HDF5, compressed): series over time and what became of each flow
//   run.json       how it was run: file, changes, version, mode, seconds, packet-hops; in real time how late, and by which ports
//
// A run can be read back from them, for reports and comparisons.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "base/result.hpp"
#include "lab/experiment.hpp"

namespace roci::lab {

// What stands in run.json.
struct RunInfo {
  std::string name;     // of the run among those of its file
  std::string command;  // that runs it again
  unsigned threads = 1;
};

// The folder is made when it is not there.
Status write_results(const std::string& folder, const Scenario& scenario, const RunInfo& info,
                     const Measurements& of);

// As far as reports need it.
struct StoredRun {
  nlohmann::ordered_json summary, run;
  Nanos bin{0};
  Series queue_most, queue_mean, goodput;
};
// The files of such a folder as values of JSON, by name, to be written elsewhere.
Result<nlohmann::ordered_json> read_files(const std::string& folder);
Status write_files(const std::string& folder, const nlohmann::ordered_json& files);

Result<StoredRun> read_results(const std::string& folder);

}  // namespace roci::lab
