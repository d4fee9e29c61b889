// Chi-squared test for a uniform distribution.
#pragma once

#include <cmath>
#include <cstdint>
#include <numeric>
#include <span>

namespace roci::test {

// Pearson's statistic for counts with equal expected values.
inline double chi_square(std::span<const uint64_t> counts) {
  const double expected = static_cast<double>(std::accumulate(counts.begin(), counts.end(), uint64_t{0})) /
                          static_cast<double>(counts.size());
  double sum = 0;
  for (const uint64_t count : counts) {
    const double off = static_cast<double>(count) - expected;
    sum += off * off / expected;
  }
  return sum;
}

// Bound that a random statistic exceeds once in 30,000 times, for this number of degrees of freedom (Wilson-Hilferty
// approximation).
inline double chi_square_bound(unsigned freedom) {
  constexpr double kSigmas = 4;
  const double k = freedom, spread = 2 / (9 * k);
  return k * std::pow(1 - spread + kSigmas * std::sqrt(spread), 3);
}

}  // namespace roci::test
