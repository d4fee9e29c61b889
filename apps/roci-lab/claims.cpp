#include "roci-lab/claims.hpp"

#include <algorithm>
#include <cstdio>
#include <map>
#include <string>

#include "roci-lab/text.hpp"

namespace roci::lab {
namespace {

Claim claim_of(const Expectation& expectation, const std::string& seed,
               const std::map<std::string, nlohmann::ordered_json>& summaries) {
  Claim claim{expectation.claim, expectation.that, "", false};
  if (!seed.empty()) claim.claim += " (seed " + seed + ")";
  const auto verdict = evaluate(expectation, summaries);
  claim.holds = verdict && verdict->holds;
  claim.found = verdict ? with_unit(verdict->left, verdict->unit) + " against " +
                              with_unit(verdict->right, verdict->unit)
                        : verdict.error().message;
  return claim;
}

}  // namespace

bool Claims::all_hold() const { return std::ranges::all_of(evaluated, &Claim::holds); }

Claims evaluate_all(const std::vector<Expectation>& expectations, const std::vector<const Job*>& jobs,
                    const std::vector<StoredRun>& results) {
  std::map<std::string, std::map<std::string, nlohmann::ordered_json>> by_seed;
  for (size_t i = 0; i < jobs.size(); ++i) by_seed[jobs[i]->seed][jobs[i]->run.called()] = results[i].summary;
  Claims out;
  for (const Expectation& expectation : expectations) {
    for (const auto& of_seed : by_seed) {
      const auto missing = [&](const std::string& run) { return !of_seed.second.contains(run); };
      if (std::ranges::any_of(expectation.runs(), missing))
        ++out.not_run;
      else
        out.evaluated.push_back(claim_of(expectation, of_seed.first, of_seed.second));
    }
  }
  return out;
}

void print(const Claims& claims) {
  for (const Claim& one : claims.evaluated)
    std::printf("%-7s %s: %s\n", one.holds ? "holds" : "FAILS", one.claim.c_str(), one.found.c_str());
  if (claims.not_run > 0) std::printf("expectations of runs that were not executed: %zu\n", claims.not_run);
}

}  // namespace roci::lab
