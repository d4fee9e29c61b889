// Means of the results over seeds, as a table.
#pragma once

#include <string>
#include <vector>

#include "lab/results/results.hpp"
#include "roci-lab/jobs.hpp"

namespace roci::lab {

// A row per run of the file and traffic: means with 95 % confidence intervals. `results[i]` is the result of `jobs[i]`.
std::string means_table(const std::vector<const Job*>& jobs, const std::vector<StoredRun>& results);

}  // namespace roci::lab
