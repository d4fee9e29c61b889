#include "base/congestion_point.hpp"

#include <array>
#include <cmath>

namespace roci {
namespace {

constexpr int64_t kMaxFeedback = 63;
// Distance to the next sample in units of 1 / kWhole of the base distance, by the upper three bits of the feedback
// (802.1Q table 30-1: 150, 75, 50, 37.5, 30, 25, 21.5 and 18.5 KB).
constexpr std::array<uint64_t, 8> kParts{300, 150, 100, 75, 60, 50, 43, 37};
constexpr uint64_t kWhole = 300;

}  // namespace

bool CongestionPoint::is_weight(double weight) {
  int exponent = 0;
  return weight >= 1 / kMaxWeight && weight <= kMaxWeight && std::frexp(weight, &exponent) == 0.5;
}

uint64_t CongestionPoint::mean_distance(uint8_t quantized) const {
  return base_ * kParts[quantized >> 3 & 7U] / kWhole;
}

// Within 15 % of the mean, so that sampling does not synchronize with flows that send periodically.
int64_t CongestionPoint::distance(uint8_t quantized) {
  return static_cast<int64_t>(rng_.around(mean_distance(quantized)));
}

QcnFeedback CongestionPoint::sample(uint64_t queue) {
  const auto now = static_cast<int64_t>(queue);
  QcnFeedback feedback{.offset = now - qeq_, .delta = now - old_queue_};
  old_queue_ = now;
  // -Fb, in units of 1/kWeightUnit bytes.
  const int64_t congestion = feedback.offset * kWeightUnit + weight_ * feedback.delta;
  if (congestion >= limit_) {
    feedback.quantized = kMaxFeedback;
  } else if (congestion > 0) {
    feedback.quantized = static_cast<uint8_t>(congestion * kMaxFeedback / limit_);
  }
  left_ = distance(feedback.quantized);
  return feedback;
}

}  // namespace roci
