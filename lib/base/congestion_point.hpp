// The congestion point of QCN (802.1Q 30.2 and 32.8, once 802.1Qau): samples the frames that come into one queue, one in
// about 150 KB and more often the more congested the queue is, and says for each sample how congested that is.
#pragma once

#include "base/rng.hpp"
#include "base/types.hpp"

namespace roci {

struct CongestionPointConfig {
  Bytes qeq{26'000};      // where the queue should be
  double weight = 2;      // of its growth against its length; a power of two from 1/1024 to 1024
  Bytes sample{150'000};  // come between two samples when there is no congestion
};

// What a sample tells the sender of the sampled frame.
struct QcnFeedback {
  uint8_t quantised = 0;  // 1 to 63; 0 when the queue is where it should be or on its way there
  int64_t offset = 0;     // bytes: the queue beyond where it should be
  int64_t delta = 0;      // bytes: how it grew since the sample before

  [[nodiscard]] bool is_congested() const { return quantised != 0; }
};

// Of one queue, such as a class of a port of a switch, and owned by whose queue it is.
class CongestionPoint {
 public:
  // `seed`: of the distances between samples.
  CongestionPoint(const CongestionPointConfig& config, uint64_t seed)
      : qeq_(static_cast<int64_t>(config.qeq.value())),
        base_(config.sample.value()),
        weight_(static_cast<int64_t>(config.weight * static_cast<double>(kWeightUnit))),
        limit_(qeq_ * (2 * weight_ + kWeightUnit)),
        rng_(seed) {
    left_ = distance(0);
  }

  // A frame of `bytes` has come, and with it `queue` bytes wait. True when it is the one to be sampled: then
  // sample() is asked once.
  [[nodiscard]] bool is_due(uint32_t bytes) {
    left_ -= static_cast<int64_t>(bytes);
    return left_ <= 0;
  }
  QcnFeedback sample(uint64_t queue);

  // Whether it may be a weight: a power of two from 1/kMostWeight to kMostWeight, as the MIB has it (IEEE8021-CN-MIB).
  static constexpr double kMostWeight = 1024;
  static bool is_weight(double weight);

  // How long it is to the next sample after one that was answered with `quantised`, without the jitter.
  [[nodiscard]] uint64_t mean_distance(uint8_t quantised) const;

 private:
  static constexpr int64_t kWeightUnit = 1024;  // of weight_ and limit_

  int64_t distance(uint8_t quantised);

  int64_t qeq_;
  uint64_t base_;
  int64_t weight_;
  int64_t limit_;  // |Fb| from which on the feedback is the largest: Qeq (2w + 1)
  Rng rng_;
  int64_t old_queue_ = 0;
  int64_t left_ = 0;  // bytes to the next sample
};

}  // namespace roci
