// Statistics of the measurements: latency samples with percentiles, and the rate of a bandwidth run over time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/types.hpp"

namespace roci::perf {

struct LatencySummary {  // times in microseconds
  uint64_t samples = 0;
  double min = 0, max = 0, typical = 0, average = 0, deviation = 0;  // typical: the median
  double p90 = 0, p99 = 0, p999 = 0, p9999 = 0;
};

// Keeps up to `kMax` samples for the percentiles. When full, it drops every second sample and from then on keeps only
// every second (fourth, ...) new one. Count, minimum, maximum, average and deviation include all samples.
class LatencySamples {
 public:
  static constexpr size_t kMax = size_t{1} << 22;

  explicit LatencySamples(size_t expected);
  void add(Nanos sample);
  [[nodiscard]] LatencySummary summary() const;
  [[nodiscard]] std::span<const uint32_t> kept() const { return kept_; }  // nanoseconds, in order of time
  [[nodiscard]] uint64_t stride() const { return stride_; }               // one of `stride` samples is kept

 private:
  std::vector<uint32_t> kept_;  // nanoseconds; limited to 4.29 s
  uint64_t stride_ = 1;
  uint64_t count_ = 0;
  double mean_ = 0, squares_ = 0;  // Welford's running mean and sum of squared distances, in nanoseconds
  int64_t min_ = 0, max_ = 0;
};

// The smallest sample that at least `fraction` of the samples do not exceed (nearest rank). `sorted` must not be empty.
uint32_t percentile(std::span<const uint32_t> sorted, double fraction);

struct HistogramBin {
  double from = 0, to = 0;  // microseconds; from <= sample < to
  uint64_t count = 0;
};
// Bins of increasing width, four per doubling of the value. Empty bins at both ends are omitted.
std::vector<HistogramBin> histogram(std::span<const uint32_t> samples);

// Completed bytes over time: the average rate of a window and the highest rate within it.
class BandwidthMeter {
 public:
  static constexpr Nanos kPeakSpan = 10ms;  // minimum length of an interval for the peak rate

  // Completions after `from`, up to `until`, are counted. Without `until`, the last completion ends the window.
  explicit BandwidthMeter(Nanos from, Nanos until = kNever)
      : from_(from), until_(until), last_(from), span_start_(from) {}
  void add(Nanos now, uint64_t messages, uint64_t bytes) {
    if (now <= from_ || now > until_) return;
    messages_ += messages;
    bytes_ += bytes;
    last_ = now;
    span_bytes_ += bytes;
    if (now - span_start_ >= kPeakSpan) close_span(now);
  }
  [[nodiscard]] uint64_t messages() const { return messages_; }
  [[nodiscard]] uint64_t bytes() const { return bytes_; }
  [[nodiscard]] Nanos elapsed() const { return (until_ == kNever ? last_ : until_) - from_; }
  [[nodiscard]] double bits_per_second() const;  // average of the window
  [[nodiscard]] double messages_per_second() const;
  [[nodiscard]] double peak_bits_per_second() const;  // the average if the window is shorter than kPeakSpan

 private:
  void close_span(Nanos now);
  Nanos from_, until_, last_, span_start_;
  uint64_t messages_ = 0, bytes_ = 0, span_bytes_ = 0;
  double peak_ = 0;  // bits/s
};

}  // namespace roci::perf
