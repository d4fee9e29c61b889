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
  Claim claim{expectation.claim, expectation.that, "", false, expectation.fails};
  if (!seed.empty()) claim.claim += " (seed " + seed + ")";
  const auto verdict = evaluate(expectation, summaries);
  claim.holds = verdict && verdict->holds;
  if (!verdict) claim.fails.clear();  // a missing value is not the known failure
  claim.found = verdict ? with_unit(verdict->left, verdict->unit) + " against " +
                              with_unit(verdict->right, verdict->unit)
                        : verdict.error().message;
  return claim;
}

}  // namespace

bool Claims::as_expected() const { return std::ranges::all_of(evaluated, &Claim::as_expected); }

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
  for (const Claim& one : claims.evaluated) {
    const bool marked = !one.fails.empty();
    if (marked && one.holds)
      std::printf("HOLDS   %s: %s; remove the mark 'fails'\n", one.claim.c_str(), one.found.c_str());
    else if (marked)
      std::printf("fails   %s: %s; fails (known): %s\n", one.claim.c_str(), one.found.c_str(),
                  one.fails.c_str());
    else
      std::printf("%-7s %s: %s\n", one.holds ? "holds" : "FAILS", one.claim.c_str(), one.found.c_str());
  }
  if (claims.not_run > 0) std::printf("expectations of runs that were not executed: %zu\n", claims.not_run);
}

}  // namespace roci::lab
