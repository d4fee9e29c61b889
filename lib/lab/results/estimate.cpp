#include "lab/results/estimate.hpp"

#include <cmath>
#include <numbers>

namespace roci::lab {
namespace {

// Probability that |t| is at most `limit`: the integral of the density by Simpson's rule.
double probability_within(double limit, double degrees) {
  constexpr int kSteps = 2'000;
  const double factor = std::exp(std::lgamma((degrees + 1) / 2) - std::lgamma(degrees / 2)) /
                        std::sqrt(degrees * std::numbers::pi);
  const auto density = [&](double t) { return factor * std::pow(1 + t * t / degrees, -(degrees + 1) / 2); };
  const double step = limit / kSteps;
  double sum = density(0) + density(limit);
  for (int i = 1; i < kSteps; ++i) sum += (i % 2 == 1 ? 4 : 2) * density(i * step);
  return 2 * sum * step / 3;
}

}  // namespace

double student_t(double confidence, size_t degrees) {
  double low = 0, high = 64;  // above the quantile of kMaxConfidence with one degree, 63.66
  for (int i = 0; i < 50; ++i) {
    const double middle = (low + high) / 2;
    (probability_within(middle, static_cast<double>(degrees)) < confidence ? low : high) = middle;
  }
  return (low + high) / 2;
}

Estimate estimate(std::span<const double> values, double confidence) {
  const auto count = static_cast<double>(values.size());
  double sum = 0;
  for (const double value : values) sum += value;
  const double mean = sum / count;
  if (values.size() < 2) return {mean, 0};
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return {mean, student_t(confidence, values.size() - 1) * std::sqrt(squares / (count - 1) / count)};
}

}  // namespace roci::lab
