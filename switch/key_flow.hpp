// Which flow is to be told when a queue is congested: "the CP judges the key flow" (L3QCN 5.2.1) and leaves it open how.
// Two ways:
//
//   sampled   that of the frame which just came. Frames are sampled by bytes, so a flow is chosen as often as it has part
//             in the load
//   heaviest  the one that has most in the last bytes of the queue, of those that have not been told of late. It finds the
//             few that matter at once, and costs a look at every frame
//
// Both are asked once in about `sample` bytes while the queue is at or beyond `threshold`.
#pragma once

#include <rte_mbuf.h>

#include <array>
#include <cstdint>

#include "base/rng.hpp"
#include "switch/class_config.hpp"
#include "wire/roce_glance.hpp"

namespace roci {

// A flow with what is needed to write to its sender.
struct KeyFlow {
  RoceFlow flow;
  std::optional<Qpn> sender;  // when the packet said it
  bool responses = false;     // READ responses
  PKey pkey;
  bool routed = false;  // came by a router, which is this switch; otherwise:
  uint16_t vlan = 0;    // where, and
  MacAddress previous;  // from whom its frames came
};

// When the queue is congested and something is to be said. Owned by the switch's thread.
class CnpPacer {
 public:
  // `seed`: of the distances between two samples.
  CnpPacer(const CnpConfig& config, uint64_t seed)
      : threshold_(config.threshold.value()), sample_(config.sample.value()), rng_(seed) {}

  // A frame of `bytes` has been queued, which now holds `queue`. The first one of a congestion is due at once: the sooner
  // the better.
  bool is_due(uint32_t bytes, uint64_t queue) {
    if (queue < threshold_) {
      left_ = 0;
      return false;
    }
    if (left_ > bytes) {
      left_ -= bytes;
      return false;
    }
    left_ = rng_.around(sample_);
    return true;
  }

 private:
  uint64_t threshold_, sample_;
  Rng rng_;
  uint64_t left_ = 0;
};

// The flows with most bytes of the last ones that came: the space-saving sketch (Metwally, Agrawal, El Abbadi 2005) with
// counts that are halved each `window` bytes. A flow that has more than 1/kFlows of the bytes is in it. Owned by the
// switch's thread.
class FlowSketch {
 public:
  static constexpr size_t kFlows = 64;

  explicit FlowSketch(uint64_t window) : window_(window) {}

  void add(const KeyFlow& flow, uint32_t bytes);
  // The heaviest that `may` lets pass; null when there is none.
  template <class May>
  [[nodiscard]] const KeyFlow* heaviest(const May& may) const {
    std::array<bool, kFlows> refused{};
    for (;;) {
      size_t best = kFlows;
      for (size_t i = 0; i < used_; ++i) {
        if (!refused[i] && bytes_[i] > 0 && (best == kFlows || bytes_[i] > bytes_[best])) best = i;
      }
      if (best == kFlows) return nullptr;
      if (may(flows_[best])) return &flows_[best];
      refused[best] = true;
    }
  }
  // What it believes that the flow has; never less than it had since the last halvings.
  [[nodiscard]] uint64_t bytes_of(const RoceFlow& flow) const;

 private:
  void halve();

  uint64_t window_;
  uint64_t since_ = 0;  // bytes since the last halving
  size_t used_ = 0;
  std::array<uint32_t, kFlows> tags_{};  // of hashes, looked through first
  std::array<uint64_t, kFlows> bytes_{};
  std::array<KeyFlow, kFlows> flows_{};
};

}  // namespace roci
