// roci-lab compare: comparison of stored results as a table and as a report.
#pragma once

#include <string>
#include <vector>

#include "lab/report/report.hpp"
#include "lab/results/results.hpp"

namespace roci::lab {

struct CompareOptions {
  std::vector<std::string> folders;  // or files with completion times of other simulators
  std::string out = "compare.html";
};

// Returns the exit status: 0, or 1 if a file cannot be read or written.
int compare_command(const CompareOptions& options);

// Reads the runs of folders with results. For a folder without results, the runs of its subfolders are read. Runs with
// the same name are named after their folders.
Result<std::vector<StoredRun>> read_folders(const std::vector<std::string>& folders);

// Writes the report and prints its path.
Status write_shown_report(const std::string& file, const std::vector<StoredRun>& runs,
                          const std::vector<Claim>& claims);

}  // namespace roci::lab
