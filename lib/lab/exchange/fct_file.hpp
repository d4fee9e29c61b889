// Completion times of another simulator: the file of HPCC's ns-3 simulator or of a descendant, or CSV with the columns
// src, dst, bytes, start_ns, fct_ns and ideal_ns.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/types.hpp"
#include "lab/results/results.hpp"

namespace roci::lab {

struct FctRecord {
  uint64_t bytes = 0;
  Nanos start{0}, duration{0};
  double ideal = 0;  // ns
};

// `name` of the file, for errors.
Result<std::vector<FctRecord>> parse_fct(std::string_view text, const std::string& name);
Result<std::vector<FctRecord>> read_fct(const std::string& file);

// The completion times as results of a run. Minimum durations are those of the first of `runs` that has the same flows:
// as many, which have equal sizes in the order of size and start. Otherwise they are those of the file.
StoredRun run_of_fct(const std::string& file, const std::vector<FctRecord>& records,
                     const std::vector<StoredRun>& runs);

}  // namespace roci::lab
