// Results of runs as one page of HTML with charts, which needs nothing beside itself.
#pragma once

#include <string>
#include <vector>

#include "lab/results.hpp"

namespace roci::lab {

// Something that was expected of the runs.
struct Claim {
  std::string claim;  // what it means
  std::string that;   // the comparison, as it is written
  std::string found;  // the numbers
  bool holds = false;
};

// Series of many runs are thinned out, and what is longest in them stays. The same runs make the same page, byte for byte.
Status write_report(const std::string& file, const std::string& title, const std::vector<StoredRun>& runs,
                    const std::vector<Claim>& claims = {});

}  // namespace roci::lab
