// roci-lab compare: results that are there, beside each other: as a table and as a report.
#pragma once

#include <string>
#include <vector>

#include "lab/report.hpp"
#include "lab/results.hpp"

namespace roci::lab {

struct CompareOptions {
  std::vector<std::string> folders;
  std::string out = "compare.html";
};

// The exit status: 0, or 1 when something cannot be read or written.
int compare_command(const CompareOptions& options);

// The runs of folders with results; a folder without has them in the folders below. Runs of one name get that of their
// folder.
Result<std::vector<StoredRun>> read_folders(const std::vector<std::string>& folders);

// Its last line on the terminal says where it is.
Status write_shown_report(const std::string& file, const std::vector<StoredRun>& runs,
                          const std::vector<Claim>& claims);

}  // namespace roci::lab
