// What a scenario's file expects of its runs: comparisons of numbers of their summaries.
//
//   hpcc.queues_bytes.s0/h16.p99 < 0.1 * dcqcn.queues_bytes.s0/h16.p99
//   'hpcc load=0.3'.traffic.web.slowdown.'< 3 KB'.p99 < 3
//
// A path begins with a run's name and goes on through its summary; parts of it with dots or spaces stand in single quotes.
// Numbers may have a unit: 20KB, 10us, 90Gbps.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace roci::lab {

struct Expectation {
  struct Factor {
    double number = 1;
    std::vector<std::string> path;  // empty: the number
  };
  using Product = std::vector<Factor>;
  enum class Relation : uint8_t { kLess, kAtMost, kMore, kAtLeast };

  std::string claim;  // what it means
  std::string that;   // as it is written
  Product left, right;
  Relation relation = Relation::kLess;

  // Of whose summaries numbers are wanted, each once.
  [[nodiscard]] std::vector<std::string> runs() const;
};

// Without a claim.
Result<Expectation> parse_expectation(std::string_view text);

struct Verdict {
  bool holds = false;
  double left = 0, right = 0;
  std::string unit;  // of both: "B", "bit/s", "ns"; empty where there is none
};

// By the runs' names; those of Expectation::runs() are there. Fails when a summary does not have what is wanted.
Result<Verdict> judge(const Expectation& expectation,
                      const std::map<std::string, nlohmann::ordered_json>& summaries);

}  // namespace roci::lab
