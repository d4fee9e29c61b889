// Active queue management of one traffic class of one port: which frames are marked, and which are dropped early.
#pragma once

#include <limits>

#include "base/rng.hpp"
#include "switch/class_config.hpp"
#include "wire/headers.hpp"

namespace roci {

enum class AqmVerdict : uint8_t { kPass, kMark, kDrop };

// Owned by the switch's thread. A queue's length is what waits in it, without the frame that is asked about: in front of
// it when it comes, behind it when it leaves.
class Aqm {
 public:
  // `seed`: of the draws between kmin and kmax.
  Aqm(const AqmConfig& config, BitsPerSec rate, uint64_t seed) : rate_(rate), rng_(Rng{seed}.next()) {
    configure(config);
  }

  // A frame has come and finds so many bytes. kMark only when it is ECN-capable and marks are made here.
  AqmVerdict on_arrival(uint64_t queue, Ecn ecn, Nanos now) {
    if (idle_) return AqmVerdict::kPass;
    const bool is_ect = ecn != Ecn::kNotEct;
    if (!chosen(is_ect ? mark_on_arrival_ : drop_, average(queue, now))) return AqmVerdict::kPass;
    return is_ect ? AqmVerdict::kMark : AqmVerdict::kDrop;
  }
  // A frame leaves so many bytes behind; never kDrop.
  AqmVerdict on_departure(uint64_t queue, Ecn ecn, Nanos now) {
    if (idle_) return AqmVerdict::kPass;
    if (queue == 0) idle_since_ = now;
    if (ecn == Ecn::kNotEct) return AqmVerdict::kPass;
    const double length = config_.weight == 1 ? static_cast<double>(queue) : average_;
    return chosen(mark_on_departure_, length) ? AqmVerdict::kMark : AqmVerdict::kPass;
  }

  // New curves for the frames from now on.
  void configure(const AqmConfig& config);
  [[nodiscard]] const AqmConfig& config() const { return config_; }

 private:
  // A marking curve as it is asked with every frame: without a division.
  struct Curve {
    double kmin = std::numeric_limits<double>::infinity();  // never
    double kmax = kmin;
    double slope = 0;  // from kmin on, a byte
  };
  static Curve curve(const MarkingCurve& config);

  // Draws a number between kmin and kmax, and else none.
  bool chosen(const Curve& curve, double length) {
    if (length < curve.kmin) return false;
    return length >= curve.kmax || rng_.chance((length - curve.kmin) * curve.slope);
  }
  // The average moves with each arrival.
  double average(uint64_t queue, Nanos now) {
    const auto length = static_cast<double>(queue);
    if (config_.weight == 1) return length;
    if (queue == 0 && now > idle_since_) decay(now);
    average_ += config_.weight * (length - average_);
    return average_;
  }
  void decay(Nanos now);

  bool idle_ = true;  // neither curve ever says anything
  Curve mark_on_arrival_, mark_on_departure_, drop_;
  double average_ = 0;
  Nanos idle_since_{0};
  AqmConfig config_;
  BitsPerSec rate_;
  LightRng rng_;
};

}  // namespace roci
