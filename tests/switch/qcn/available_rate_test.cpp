// Rate computation of congestion points, tested with simulated fluid flows that follow the advertised rate at once or
// after a delay.
#include "switch/qcn/available_rate.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>

namespace roci {
namespace {

// Model of flows with frames of 1,250 bytes on the wire through a queue of 10 Gb/s. Each flow sends at the rate that
// was advertised `delay` ago.
class Loop {
 public:
  Loop(const AvailableRate::Config& config, Nanos delay) : rate_(config), delay_(delay) {}

  // Runs `flows` flows for `span`. Other classes use `others` bits per second, with priority.
  void run(Nanos span, uint32_t flows, double others = 0) {
    peak_ = 0;
    for (const Nanos end = now_ + span; now_ < end; now_ += kStep) {
      said_.push_back(static_cast<double>(rate_.rate().value()));
      if (said_.size() > static_cast<size_t>(delay_ / kStep)) {
        told_ = said_.front();
        said_.pop_front();
      }
      const double seconds = 1e-9 * static_cast<double>(kStep.count());
      credit_ += std::min(told_ * flows, 40e9) * seconds / 8;
      others_ += others * seconds / 8;
      queue_ = std::max(0.0, queue_ - (kLine - others) * seconds / 8);
      for (; credit_ >= 1250; credit_ -= 1250) {
        queue_ += 1250;
        rate_.arrived(1250, static_cast<uint64_t>(queue_), static_cast<uint64_t>(others_), now_);
      }
      peak_ = std::max(peak_, queue_);
    }
  }
  [[nodiscard]] double gbps() const { return static_cast<double>(rate_.rate().value()) * 1e-9; }
  [[nodiscard]] double queue() const { return queue_; }
  [[nodiscard]] double peak() const { return peak_; }
  AvailableRate& rate() { return rate_; }
  [[nodiscard]] Nanos now() const { return now_; }

 private:
  static constexpr double kLine = 10e9;
  static constexpr Nanos kStep = 1us;
  AvailableRate rate_;
  Nanos delay_;
  std::deque<double> said_;
  double told_ = 1e9, credit_ = 0, others_ = 0, queue_ = 0, peak_ = 0;
  Nanos now_{0};
};

TEST(AvailableRate, flows_share_the_line_equally_and_the_queue_drains) {
  Loop loop({.line = 10_Gbps, .rtt = 50us}, 50us);
  for (const uint32_t flows : {2U, 8U, 64U, 5U, 1U}) {
    loop.run(20ms, flows);
    EXPECT_NEAR(loop.gbps() * flows, 10, 0.2) << flows;
    EXPECT_LT(loop.queue(), 5000) << flows;
  }
}

TEST(AvailableRate, rate_is_stable_at_half_and_twice_the_configured_delay) {
  for (const Nanos delay : {25us, 100us}) {
    Loop loop({.line = 10_Gbps, .rtt = 50us}, delay);
    loop.run(40ms, 10);
    loop.run(5ms, 10);  // restarts the peak measurement
    EXPECT_NEAR(loop.gbps(), 1, 0.1) << delay.count();
    EXPECT_LT(loop.peak(), 20'000) << delay.count();
  }
}

TEST(AvailableRate, excludes_bandwidth_used_by_other_classes) {
  Loop loop({.line = 10_Gbps, .share = 0, .rtt = 50us}, 50us);
  loop.run(20ms, 3, 4e9);
  EXPECT_NEAR(loop.gbps() * 3, 6, 0.2);
  loop.run(20ms, 3, 0);
  EXPECT_NEAR(loop.gbps() * 3, 10, 0.2);
}

TEST(AvailableRate, guaranteed_share_is_available_when_other_classes_fill_the_line) {
  AvailableRate rate({.line = 10_Gbps, .share = 0.25, .rtt = 50us});
  uint64_t others = 0;
  for (Nanos now = 1us; now < 5ms; now += 1us) {
    others += 1250;  // 10 Gb/s
    rate.arrived(312, 0, others, now);
  }
  EXPECT_NEAR(static_cast<double>(rate.rate().value()), 2.5e9, 0.1e9);
}

TEST(AvailableRate, line_rate_is_available_after_a_long_silence) {
  Loop loop({.line = 10_Gbps, .rtt = 50us}, 50us);
  loop.run(20ms, 64);
  EXPECT_LT(loop.gbps(), 0.2);
  loop.rate().arrived(1250, 0, 0, loop.now() + 10ms);
  EXPECT_NEAR(loop.gbps(), 10, 0.01);
}

TEST(AvailableRate, rate_is_not_below_the_smallest_representable_value) {
  AvailableRate rate({.line = 10_Gbps, .rtt = 50us});
  for (Nanos now = 1us; now < 50ms; now += 1us) rate.arrived(5000, 100'000'000, 0, now);
  EXPECT_EQ(rate.rate().value(), 100'000U);
}

// Half of the line is in use and the queue is empty: 0.4 * 5 Gb/s per round trip.
TEST(AvailableRate, change_reports_the_rate_added_since_the_last_sample) {
  AvailableRate rate({.line = 10_Gbps, .rtt = 50us});
  for (Nanos now = 1us; now <= 1ms; now += 1us) rate.arrived(625, 0, 0, now);
  (void)rate.take_change(1ms);
  EXPECT_NEAR(static_cast<double>(rate.take_change(1ms + 25us)), 1e9, 0.05e9);
  EXPECT_EQ(rate.take_change(1ms + 25us), 0) << "all of it has just been given";
}

TEST(AvailableRate, queue_yields_a_negative_rate_change) {
  AvailableRate rate({.line = 10_Gbps, .rtt = 50us});
  for (Nanos now = 1us; now <= 1ms; now += 1us) rate.arrived(1250, 62'500, 0, now);
  (void)rate.take_change(1ms);
  // 62,500 bytes per 50 us are 10 Gb/s.
  EXPECT_NEAR(static_cast<double>(rate.take_change(1ms + 50us)), -2.26e9, 0.05e9);
}

}  // namespace
}  // namespace roci
