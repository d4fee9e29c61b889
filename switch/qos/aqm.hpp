// Active queue management (WRED and ECN) of one traffic class of one port: selects frames to mark and to drop early.
#pragma once

#include <limits>

#include "base/rng.hpp"
#include "switch/qos/class_config.hpp"
#include "wire/headers/headers.hpp"

namespace roci {

enum class AqmVerdict : uint8_t { kPass, kMark, kDrop };

// AQM state of one queue. Owned by one switch worker. A queue length excludes the frame itself: on arrival it is the
// length in front of the frame, on departure the length that remains.
class Aqm {
 public:
  // `seed` of the draws between kmin and kmax. Classes have consecutive seeds; one step of Rng makes them independent.
  Aqm(const AqmConfig& config, BitsPerSec rate, uint64_t seed) : rate_(rate), rng_(Rng{seed}.next()) {
    configure(config);
  }

  // Called when a frame arrives at a queue of `queue` bytes. Returns kMark only for ECN-capable frames and with
  // MarkAt::kEnqueue.
  AqmVerdict on_arrival(uint64_t queue, Ecn ecn, Nanos now) {
    if (idle_) return AqmVerdict::kPass;
    const bool is_ect = ecn != Ecn::kNotEct;
    if (!chosen(is_ect ? mark_on_arrival_ : drop_, average(queue, now))) return AqmVerdict::kPass;
    return is_ect ? AqmVerdict::kMark : AqmVerdict::kDrop;
  }
  // Called when a frame leaves and `queue` bytes remain. Never returns kDrop.
  AqmVerdict on_departure(uint64_t queue, Ecn ecn, Nanos now) {
    if (idle_) return AqmVerdict::kPass;
    if (queue == 0) idle_since_ = now;
    if (ecn == Ecn::kNotEct) return AqmVerdict::kPass;
    const double length = config_.weight == 1 ? static_cast<double>(queue) : average_;
    return chosen(mark_on_departure_, length) ? AqmVerdict::kMark : AqmVerdict::kPass;
  }

  // Applies new curves to later frames.
  void configure(const AqmConfig& config);
  [[nodiscard]] const AqmConfig& config() const { return config_; }

 private:
  // Marking curve with a precomputed slope, so that no division is required per frame.
  struct Curve {
    double kmin = std::numeric_limits<double>::infinity();  // infinity: never
    double kmax = kmin;
    double slope = 0;  // probability per byte above kmin
  };
  static Curve curve(const MarkingCurve& config);

  // Draws a random number only between kmin and kmax.
  bool chosen(const Curve& curve, double length) {
    if (length < curve.kmin) return false;
    return length >= curve.kmax || rng_.chance((length - curve.kmin) * curve.slope);
  }
  // Called for each arrival, which updates the average.
  double average(uint64_t queue, Nanos now) {
    const auto length = static_cast<double>(queue);
    if (config_.weight == 1) return length;
    if (queue == 0 && now > idle_since_) decay(now);
    average_ += config_.weight * (length - average_);
    return average_;
  }
  void decay(Nanos now);

  bool idle_ = true;  // neither curve is configured
  Curve mark_on_arrival_, mark_on_departure_, drop_;
  double average_ = 0;
  Nanos idle_since_{0};
  AqmConfig config_;
  BitsPerSec rate_;
  LightRng rng_;
};

}  // namespace roci
