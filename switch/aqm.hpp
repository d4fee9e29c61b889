// Active queue management of one traffic class of one port: which frames are marked, and which are dropped early.
#pragma once

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
  Aqm(const AqmConfig& config, BitsPerSec rate, uint64_t seed) : rate_(rate), rng_(seed) {
    configure(config);
  }

  // A frame has come and finds so many bytes. kMark only when it is ECN-capable and marks are made here.
  AqmVerdict on_arrival(uint64_t queue, Ecn ecn, Nanos now) {
    return idle_ ? AqmVerdict::kPass : decide_arrival(queue, ecn, now);
  }
  // A frame leaves so many bytes behind; never kDrop.
  AqmVerdict on_departure(uint64_t queue, Ecn ecn, Nanos now) {
    return idle_ ? AqmVerdict::kPass : decide_departure(queue, ecn, now);
  }

  // New curves for the frames from now on.
  void configure(const AqmConfig& config) {
    config_ = config;
    idle_ = config.mark.never() && config.drop.never();
  }
  [[nodiscard]] const AqmConfig& config() const { return config_; }

 private:
  AqmVerdict decide_arrival(uint64_t queue, Ecn ecn, Nanos now);
  AqmVerdict decide_departure(uint64_t queue, Ecn ecn, Nanos now);
  double average(uint64_t queue, Nanos now);

  AqmConfig config_;
  bool idle_ = true;  // neither curve ever says anything
  BitsPerSec rate_;
  Rng rng_;
  double average_ = 0;
  Nanos idle_since_{0};
};

}  // namespace roci
