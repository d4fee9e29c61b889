// HTML report of runs: a self-contained page with charts.
#pragma once

#include <string>
#include <vector>

#include "lab/results/results.hpp"

namespace roci::lab {

// Result of an expectation.
struct Claim {
  std::string claim;  // description
  std::string that;   // the comparison, as in the file
  std::string found;  // the values
  bool holds = false;
  std::string fails = {};  // the reason, if the claim is known to fail; empty if `found` is an error

  // Whether the file expects this result.
  [[nodiscard]] bool as_expected() const { return holds == fails.empty(); }
};

// Series of many runs are thinned out, and maxima remain. The same runs give the same page, byte for byte.
Status write_report(const std::string& file, const std::string& title, const std::vector<StoredRun>& runs,
                    const std::vector<Claim>& claims = {});

}  // namespace roci::lab
