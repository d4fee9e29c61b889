// Specifies what a benchmark is compared with, in its label. The label is part of the JSON output and read by
// bench/harness/google_benchmark.py. The comparison uses the first rate that both report, otherwise time.
#pragma once

#include <benchmark/benchmark.h>

#include <initializer_list>
#include <string>

namespace roci::bench {

// `names`: benchmarks of the same program and run, peers or limits.
inline void against(benchmark::State& state, std::initializer_list<std::string> names) {
  std::string label = "against";
  for (const std::string& name : names) label += " " + name;
  state.SetLabel(label);
}

inline benchmark::Counter rate(double value) {
  return benchmark::Counter(value, benchmark::Counter::kIsRate);
}

}  // namespace roci::bench
