// What a file expects of its runs, held against what they gave.
#pragma once

#include <vector>

#include "lab/report.hpp"
#include "roci-lab/jobs.hpp"

namespace roci::lab {

// `results` belong to `jobs`, one by one. What is about runs that are not there is left out and counted in `not_run`.
struct Claims {
  std::vector<Claim> judged;
  size_t not_run = 0;
  [[nodiscard]] bool all_hold() const;
};
Claims judge_all(const std::vector<Expectation>& expectations, const std::vector<const Job*>& jobs,
                 const std::vector<StoredRun>& results);
void print(const Claims& claims);

}  // namespace roci::lab
