// QCN congestion point (802.1Q 30.2 and 32.8, formerly 802.1Qau): samples the frames that arrive in a queue, one per
// about 150 KB and more with increasing congestion, and computes the feedback for each sample.
#pragma once

#include "base/rng.hpp"
#include "base/types.hpp"

namespace roci {

struct CongestionPointConfig {
  Bytes qeq{26'000};      // set point of the queue
  double weight = 2;      // of the queue's growth relative to its length; a power of two from 1/1024 to 1024
  Bytes sample{150'000};  // between two samples without congestion
};

// Feedback for the sender of a sampled frame.
struct QcnFeedback {
  uint8_t quantized = 0;  // 1 to 63; 0: no congestion
  int64_t offset = 0;     // bytes: queue length above the set point
  int64_t delta = 0;      // bytes: growth of the queue since the previous sample

  [[nodiscard]] bool is_congested() const { return quantized != 0; }
};

// Congestion point of one queue, such as a traffic class of a switch port. Owned by the owner of the queue.
class CongestionPoint {
 public:
  // `seed`: for the random distances between samples.
  CongestionPoint(const CongestionPointConfig& config, uint64_t seed)
      : qeq_(static_cast<int64_t>(config.qeq.value())),
        base_(config.sample.value()),
        weight_(static_cast<int64_t>(config.weight * static_cast<double>(kWeightUnit))),
        limit_(qeq_ * (2 * weight_ + kWeightUnit)),
        rng_(seed) {
    left_ = distance(0);
  }

  // A frame of `bytes` has arrived. True if it is to be sampled: the caller must then call sample() once.
  [[nodiscard]] bool is_due(uint32_t bytes) {
    left_ -= static_cast<int64_t>(bytes);
    return left_ <= 0;
  }
  // `queue`: bytes in the queue, including the frame.
  QcnFeedback sample(uint64_t queue);

  // Whether `weight` is allowed: a power of two from 1/kMaxWeight to kMaxWeight, as in IEEE8021-CN-MIB.
  static constexpr double kMaxWeight = 1024;
  static bool is_weight(double weight);

  // Mean distance in bytes to the next sample after a feedback of `quantized`, before random variation.
  [[nodiscard]] uint64_t mean_distance(uint8_t quantized) const;

 private:
  static constexpr int64_t kWeightUnit = 1024;  // of weight_ and limit_

  int64_t distance(uint8_t quantized);

  int64_t qeq_;
  uint64_t base_;
  int64_t weight_;
  int64_t limit_;  // |Fb| at and above which the feedback is at its maximum: Qeq (2w + 1)
  Rng rng_;
  int64_t old_queue_ = 0;
  int64_t left_ = 0;  // bytes until the next sample
};

}  // namespace roci
