// Expectations of a scenario file about its runs: comparisons of numbers in their summaries.
//
//   hpcc.queues_bytes.s0/h16.p99 < 0.1 * dcqcn.queues_bytes.s0/h16.p99
//   'hpcc load=0.3'.traffic.web.slowdown.'< 3 KB'.p99 < 3
//
// A path starts with the name of a run and continues through its summary. Parts with dots or spaces are enclosed in
// single quotes. Numbers may have a unit: 20KB, 10us, 90Gbps.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "lab/results/estimate.hpp"

namespace roci::lab {

struct Expectation {
  struct Factor {
    double number = 1;
    std::vector<std::string> path;  // empty: `number` is the factor
  };
  using Product = std::vector<Factor>;
  enum class Relation : uint8_t { kLess, kAtMost, kMore, kAtLeast };

  std::string claim;      // description
  std::string that;       // the comparison, as in the file
  std::string fails;      // the reason, if the claim is known to fail
  double confidence = 0;  // with several seeds, required of the difference of the means; 0: none
  Product left, right;
  Relation relation = Relation::kLess;

  // Names of the runs whose summaries are required, without duplicates.
  [[nodiscard]] std::vector<std::string> runs() const;
  // Runs and traffics whose completion times or slowdowns are compared, without duplicates.
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> timed_traffics() const;
};

// Does not set `claim`, `fails` and `confidence`.
Result<Expectation> parse_expectation(std::string_view text);

struct Verdict {
  bool holds = false;
  double left = 0, right = 0;  // with several seeds: means
  std::string unit;            // of both: "B", "bit/s", "ns"; empty without a unit
  // With several seeds: half widths of the confidence intervals of the means, and whether the means satisfy the
  // comparison or its opposite in the whole confidence interval of their difference.
  double left_interval = 0, right_interval = 0;
  bool significant = true;
};

using Summaries = std::map<std::string, nlohmann::ordered_json>;  // by run name

// `summaries` must contain those of Expectation::runs(). Fails if a summary lacks a required value.
Result<Verdict> evaluate(const Expectation& expectation, const Summaries& summaries);
// The same for the means of several seeds. The difference is that of the values with the same seed. With
// Expectation::confidence, the claim holds only if the difference is significant.
Result<Verdict> evaluate(const Expectation& expectation, const std::vector<Summaries>& of_seeds);

}  // namespace roci::lab
