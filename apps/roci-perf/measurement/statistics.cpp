#include "roci-perf/measurement/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace roci::perf {
namespace {

double micros(double nanos) { return nanos / 1000.0; }
double seconds(Nanos span) { return static_cast<double>(span.count()) * 1e-9; }

// The lower edge of bin `i` in nanoseconds: 2^(i/4), rounded down.
uint64_t bin_edge(unsigned i) { return static_cast<uint64_t>(std::exp2(static_cast<double>(i) / 4.0)); }

}  // namespace

LatencySamples::LatencySamples(size_t expected) { kept_.reserve(std::min(expected, kMax)); }

void LatencySamples::add(Nanos sample) {
  const int64_t nanos = std::max<int64_t>(0, sample.count());
  min_ = count_ == 0 ? nanos : std::min(min_, nanos);
  max_ = std::max(max_, nanos);
  if (count_ % stride_ == 0) {
    if (kept_.size() == kMax) {
      for (size_t i = 0; i < kMax / 2; ++i) kept_[i] = kept_[2 * i];
      kept_.resize(kMax / 2);
      stride_ *= 2;
    }
    // kMax is even, so the sample that exceeds it has a number that is a multiple of the doubled stride.
    kept_.push_back(static_cast<uint32_t>(std::min<int64_t>(nanos, std::numeric_limits<uint32_t>::max())));
  }
  ++count_;
  const double distance = static_cast<double>(nanos) - mean_;
  mean_ += distance / static_cast<double>(count_);
  squares_ += distance * (static_cast<double>(nanos) - mean_);
}

LatencySummary LatencySamples::summary() const {
  LatencySummary s;
  if (count_ == 0) return s;
  std::vector<uint32_t> sorted(kept_);
  std::sort(sorted.begin(), sorted.end());
  s.samples = count_;
  s.min = micros(static_cast<double>(min_));
  s.max = micros(static_cast<double>(max_));
  s.average = micros(mean_);
  s.deviation = micros(std::sqrt(squares_ / static_cast<double>(count_)));
  s.typical = micros(percentile(sorted, 0.5));
  s.p90 = micros(percentile(sorted, 0.9));
  s.p99 = micros(percentile(sorted, 0.99));
  s.p999 = micros(percentile(sorted, 0.999));
  s.p9999 = micros(percentile(sorted, 0.9999));
  return s;
}

uint32_t percentile(std::span<const uint32_t> sorted, double fraction) {
  // The subtraction prevents that rounding of 0.99 * 100 to 99.00000000000001 results in rank 100.
  const double rank = std::ceil(fraction * static_cast<double>(sorted.size()) - 1e-9);
  const size_t index = rank < 1 ? 0 : static_cast<size_t>(rank) - 1;
  return sorted[std::min(index, sorted.size() - 1)];
}

std::vector<HistogramBin> histogram(std::span<const uint32_t> samples) {
  std::vector<HistogramBin> bins;
  if (samples.empty()) return bins;
  std::vector<uint32_t> sorted(samples.begin(), samples.end());
  std::sort(sorted.begin(), sorted.end());
  size_t at = 0;
  for (unsigned i = 0; at < sorted.size(); ++i) {
    const uint64_t from = i == 0 ? 0 : bin_edge(i);
    const uint64_t to = bin_edge(i + 1);
    const size_t first = at;
    while (at < sorted.size() && sorted[at] < to) ++at;
    if (at == 0) continue;     // below the smallest sample
    if (from == to) continue;  // the first edges are equal after rounding to whole nanoseconds
    bins.push_back({micros(static_cast<double>(from)), micros(static_cast<double>(to)), at - first});
  }
  return bins;
}

void BandwidthMeter::close_span(Nanos now) {
  peak_ = std::max(peak_, static_cast<double>(span_bytes_) * 8 / seconds(now - span_start_));
  span_start_ = now;
  span_bytes_ = 0;
}

double BandwidthMeter::bits_per_second() const {
  return elapsed() > Nanos{0} ? static_cast<double>(bytes_) * 8 / seconds(elapsed()) : 0;
}
double BandwidthMeter::messages_per_second() const {
  return elapsed() > Nanos{0} ? static_cast<double>(messages_) / seconds(elapsed()) : 0;
}
double BandwidthMeter::peak_bits_per_second() const { return std::max(peak_, bits_per_second()); }

}  // namespace roci::perf
