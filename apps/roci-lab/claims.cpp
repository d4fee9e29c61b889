#include "roci-lab/claims.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <map>
#include <string>

#include "roci-lab/text.hpp"

namespace roci::lab {
namespace {

// "20.1 KB", with several seeds "20.1 KB ± 1.3 KB".
std::string value_text(double value, double interval, const std::string& unit) {
  return with_unit(value, unit) + (interval > 0 ? " ± " + with_unit(interval, unit) : "");
}

// " (37 of 40 flows ended)" for each compared traffic with flows that have not ended; percentiles are of the others.
std::string unfinished_text(const Expectation& expectation, const std::vector<Summaries>& of_seeds) {
  std::string out;
  for (const auto& [run, traffic] : expectation.timed_traffics()) {
    uint64_t flows = 0, ended = 0;
    for (const Summaries& summaries : of_seeds) {
      const nlohmann::ordered_json of = summaries.at(run).value("traffic", nlohmann::ordered_json::object());
      if (!of.contains(traffic)) continue;
      flows += of[traffic].value("flows", uint64_t{0});
      ended += of[traffic].value("ended", uint64_t{0});
    }
    if (ended < flows)
      out += " (" + run + ": " + std::to_string(ended) + " of " + std::to_string(flows) + " flows ended)";
  }
  return out;
}

Claim claim_of(const Expectation& expectation, const std::vector<Summaries>& of_seeds) {
  Claim claim{expectation.claim, expectation.that, "", false, expectation.fails};
  const auto verdict = evaluate(expectation, of_seeds);
  claim.holds = verdict && verdict->holds;
  if (!verdict) {
    claim.fails.clear();  // a missing value is not the known failure
    claim.found = verdict.error().message + unfinished_text(expectation, of_seeds);
    return claim;
  }
  claim.found = value_text(verdict->left, verdict->left_interval, verdict->unit) + " against " +
                value_text(verdict->right, verdict->right_interval, verdict->unit);
  if (of_seeds.size() > 1) claim.found += " (" + std::to_string(of_seeds.size()) + " seeds)";
  if (!verdict->significant) claim.found += ", the difference is not significant";
  claim.found += unfinished_text(expectation, of_seeds);
  return claim;
}

}  // namespace

bool Claims::as_expected() const { return std::ranges::all_of(evaluated, &Claim::as_expected); }

Claims evaluate_all(const std::vector<Expectation>& expectations, const std::vector<const Job*>& jobs,
                    const std::vector<StoredRun>& results) {
  std::map<std::string, Summaries> by_seed;
  for (size_t i = 0; i < jobs.size(); ++i) by_seed[jobs[i]->seed][jobs[i]->run.called()] = results[i].summary;
  Claims out;
  for (const Expectation& expectation : expectations) {
    std::vector<Summaries> of_seeds;
    for (const auto& of_seed : by_seed) {
      const Summaries& summaries = of_seed.second;
      if (std::ranges::all_of(expectation.runs(),
                              [&](const std::string& run) { return summaries.contains(run); }))
        of_seeds.push_back(summaries);
    }
    if (of_seeds.empty())
      ++out.not_run;
    else
      out.evaluated.push_back(claim_of(expectation, of_seeds));
  }
  return out;
}

Status write_claims(const std::string& file, const Claims& claims) {
  auto list = nlohmann::ordered_json::array();
  for (const Claim& one : claims.evaluated) {
    list.push_back({{"claim", one.claim},
                    {"that", one.that},
                    {"found", one.found},
                    {"holds", one.holds},
                    {"fails", one.fails}});
  }
  std::ofstream out(file);
  out << list.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) << "\n";
  out.close();
  return out ? Status{} : fail("'" + file + "' cannot be written", EIO);
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
