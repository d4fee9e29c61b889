// Comparison of a scenario file's expectations with the results of its runs.
#pragma once

#include <string>
#include <vector>

#include "lab/report/report.hpp"
#include "roci-lab/jobs.hpp"

namespace roci::lab {

// The evaluated expectations. `not_run` counts expectations that refer to runs without results; they are not evaluated.
struct Claims {
  std::vector<Claim> evaluated;
  size_t not_run = 0;
  // Each claim holds, or fails if it is marked as failing.
  [[nodiscard]] bool as_expected() const;
};
// `results[i]` is the result of `jobs[i]`. An expectation is evaluated once, for the means of all seeds.
Claims evaluate_all(const std::vector<Expectation>& expectations, const std::vector<const Job*>& jobs,
                    const std::vector<StoredRun>& results);
void print(const Claims& claims);
// Writes the claims as JSON.
Status write_claims(const std::string& file, const Claims& claims);

}  // namespace roci::lab
