// Mean of independent values, such as those of runs with different seeds, and the confidence interval of the mean.
#pragma once

#include <cstddef>
#include <span>

namespace roci::lab {

struct Estimate {
  double mean = 0;
  double interval = 0;  // the interval is mean ± this value; 0 for a single value
};

inline constexpr double kConfidence = 0.95;  // default
inline constexpr double kMinConfidence = 0.5, kMaxConfidence = 0.99;

// By Student's t distribution, for values with a normal distribution. `values` must not be empty.
Estimate estimate(std::span<const double> values, double confidence = kConfidence);

// Two-sided quantile of Student's t distribution: |t| is at most the result with the probability `confidence`, which is
// between kMinConfidence and kMaxConfidence. `degrees` of freedom, at least 1.
double student_t(double confidence, size_t degrees);

}  // namespace roci::lab
