#include "roci-perf/measurement/statistics.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/rng.hpp"

namespace roci::perf {
namespace {

TEST(Percentile, uses_nearest_rank) {
  std::vector<uint32_t> hundred(100);
  std::iota(hundred.begin(), hundred.end(), 1);
  EXPECT_EQ(percentile(hundred, 0.5), 50U);
  EXPECT_EQ(percentile(hundred, 0.9), 90U);
  EXPECT_EQ(percentile(hundred, 0.99), 99U);
  EXPECT_EQ(percentile(hundred, 0.999), 100U);
  EXPECT_EQ(percentile(hundred, 0), 1U);
  EXPECT_EQ(percentile(hundred, 1), 100U);
  EXPECT_EQ(percentile(std::vector<uint32_t>{7}, 0.5), 7U);
}

// Compares with a counting model: the smallest sample that at least `fraction` of the samples do not exceed.
TEST(Percentile, agrees_with_counting_model) {
  Rng rng(1);
  for (int round = 0; round < 200; ++round) {
    std::vector<uint32_t> samples(rng.between(1, 50));
    for (auto& s : samples) s = static_cast<uint32_t>(rng.below(20));
    std::sort(samples.begin(), samples.end());
    for (const double fraction : {0.1, 0.25, 0.5, 0.9, 0.99, 0.999}) {
      const uint32_t found = percentile(samples, fraction);
      const auto below = [&](uint32_t limit) {
        return static_cast<double>(
            std::count_if(samples.begin(), samples.end(), [&](uint32_t s) { return s <= limit; }));
      };
      const double needed = fraction * static_cast<double>(samples.size()) - 1e-9;
      EXPECT_GE(below(found), needed);
      if (found > samples.front()) {
        EXPECT_LT(below(found - 1), needed);
      }
    }
  }
}

TEST(LatencySamples, summary_is_in_microseconds) {
  LatencySamples samples(4);
  for (const int nanos : {1000, 2000, 3000, 6000}) samples.add(Nanos{nanos});
  const LatencySummary s = samples.summary();
  EXPECT_EQ(s.samples, 4U);
  EXPECT_DOUBLE_EQ(s.min, 1);
  EXPECT_DOUBLE_EQ(s.max, 6);
  EXPECT_DOUBLE_EQ(s.typical, 2);
  EXPECT_DOUBLE_EQ(s.average, 3);
  EXPECT_NEAR(s.deviation, std::sqrt(3.5), 1e-9);
  EXPECT_DOUBLE_EQ(s.p9999, 6);
}

TEST(LatencySamples, empty_summary_has_zero_samples) { EXPECT_EQ(LatencySamples(0).summary().samples, 0U); }

// With more samples than are kept, exact values stay exact, and percentiles stay close.
TEST(LatencySamples, thins_samples_when_full) {
  LatencySamples samples(0);
  const uint64_t count = LatencySamples::kMax * 5 / 2;
  for (uint64_t i = 0; i < count; ++i) samples.add(Nanos{static_cast<int64_t>(i)});
  EXPECT_EQ(samples.stride(), 4U);
  EXPECT_LE(samples.kept().size(), LatencySamples::kMax);
  for (size_t i = 0; i < samples.kept().size(); ++i) ASSERT_EQ(samples.kept()[i], i * 4);
  const LatencySummary s = samples.summary();
  EXPECT_EQ(s.samples, count);
  EXPECT_DOUBLE_EQ(s.max, static_cast<double>(count - 1) / 1000);
  EXPECT_NEAR(s.average, static_cast<double>(count - 1) / 2000, 1e-3);
  EXPECT_NEAR(s.typical, static_cast<double>(count) / 2000, 0.1);
}

TEST(Histogram, counts_every_sample_in_its_bin) {
  Rng rng(2);
  std::vector<uint32_t> samples(1000);
  for (auto& s : samples) s = static_cast<uint32_t>(rng.between(3, 2'000'000));
  uint64_t total = 0;
  double end = 0;
  const auto bins = histogram(samples);
  for (const HistogramBin& bin : bins) {
    const auto inside = std::count_if(samples.begin(), samples.end(), [&](uint32_t s) {
      const double micros = s / 1000.0;
      return micros >= bin.from && micros < bin.to;
    });
    EXPECT_EQ(static_cast<uint64_t>(inside), bin.count);
    if (end > 0) {
      EXPECT_DOUBLE_EQ(bin.from, end);
    }
    end = bin.to;
    total += bin.count;
  }
  EXPECT_EQ(total, samples.size());
  EXPECT_GT(bins.front().count, 0U);
  EXPECT_GT(bins.back().count, 0U);
}

TEST(BandwidthMeter, average_ends_at_last_completion) {
  BandwidthMeter meter(1s);
  meter.add(1s + 2ms, 1, 1000);
  meter.add(1s + 4ms, 3, 3000);
  EXPECT_EQ(meter.messages(), 4U);
  EXPECT_DOUBLE_EQ(meter.bits_per_second(), 4000 * 8 / 0.004);
  EXPECT_DOUBLE_EQ(meter.messages_per_second(), 1000);
  EXPECT_DOUBLE_EQ(meter.peak_bits_per_second(), meter.bits_per_second());  // Too short for a separate peak.
}

// With few large messages, the last completion may precede the end by most of the window.
TEST(BandwidthMeter, average_of_timed_run_covers_the_whole_window) {
  BandwidthMeter meter(1s, 1s + 200ms);
  meter.add(1s + 25ms, 1, 1000);
  meter.add(1s + 201ms, 1, 1000);  // after the window
  EXPECT_EQ(meter.messages(), 1U);
  EXPECT_EQ(meter.elapsed(), 200ms);
  EXPECT_DOUBLE_EQ(meter.bits_per_second(), 1000 * 8 / 0.2);
  EXPECT_DOUBLE_EQ(meter.messages_per_second(), 5);
  EXPECT_DOUBLE_EQ(meter.peak_bits_per_second(), 1000 * 8 / 0.025);
}

TEST(BandwidthMeter, peak_of_timed_run_ignores_intervals_below_minimum) {
  BandwidthMeter meter(1s, 1s + 200ms);
  meter.add(1s + 1us, 1, 1'000'000);
  EXPECT_DOUBLE_EQ(meter.peak_bits_per_second(), 1'000'000 * 8 / 0.2);
}

TEST(BandwidthMeter, peak_is_the_fastest_interval) {
  BandwidthMeter meter(0s);
  for (int ms = 1; ms <= 100; ++ms) meter.add(ms * 1ms, 1, ms > 40 && ms <= 60 ? 2000 : 1000);
  EXPECT_NEAR(meter.peak_bits_per_second(), 2000 * 8 / 0.001, 1);
  EXPECT_NEAR(meter.bits_per_second(), 120'000 * 8 / 0.1, 1);
}

TEST(BandwidthMeter, ignores_completions_before_start) {
  BandwidthMeter meter(1s);
  meter.add(900ms, 5, 5000);
  EXPECT_EQ(meter.messages(), 0U);
  EXPECT_DOUBLE_EQ(meter.bits_per_second(), 0);
}

}  // namespace
}  // namespace roci::perf
