// Key flow: the flow that is notified when a queue is congested. "The CP judges the key flow" (L3QCN 5.2.1) does not
// specify the method. Two methods are implemented:
//
//   sampled   the flow of the frame that has just arrived. Frames are sampled by bytes, so a flow is selected in
//             proportion to its share of the load
//   heaviest  the flow with the most recent bytes in the queue, of those not notified within `spacing`. It finds heavy
//             flows at once, but inspects every frame
//
// Both are applied about once per `sample` bytes while the queue holds `threshold` bytes or more.
#pragma once

#include <rte_mbuf.h>

#include <array>
#include <cstdint>

#include "base/rng.hpp"
#include "switch/qos/class_config.hpp"
#include "wire/roce/roce_peek.hpp"

namespace roci {

// Flow, with the data that a message to its sender requires.
struct KeyFlow {
  RoceFlow flow;
  std::optional<Qpn> sender;  // if the packet names it
  bool responses = false;     // the flow consists of READ responses
  PKey pkey;
  bool routed = false;  // this switch has routed it; otherwise:
  uint16_t vlan = 0;    // VLAN of its frames
  MacAddress previous;  // source MAC of its frames
};

// Pacer of the CNPs of a congested queue. Owned by one switch worker.
class CnpPacer {
 public:
  // `seed` of the distances between samples.
  CnpPacer(const CnpConfig& config, uint64_t seed)
      : threshold_(config.threshold.value()), sample_(config.sample.value()), rng_(seed) {}

  // Called after a frame of `bytes` was queued; `queue` is the resulting length. The first frame above the threshold is
  // due at once.
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

// Sketch of the flows with the most recent bytes: space-saving (Metwally, Agrawal, El Abbadi 2005), with counts that
// are halved every `window` bytes. It contains each flow with more than 1/kFlows of the bytes. Owned by one switch
// worker.
class FlowSketch {
 public:
  static constexpr size_t kFlows = 64;

  explicit FlowSketch(uint64_t window) : window_(window) {}

  void add(const KeyFlow& flow, uint32_t bytes);
  // Returns the heaviest flow for which `may` returns true; null if none qualifies.
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
  // Estimate of the flow's bytes; not less than the actual bytes since the last halvings.
  [[nodiscard]] uint64_t bytes_of(const RoceFlow& flow) const;

 private:
  void halve();

  uint64_t window_;
  uint64_t since_ = 0;  // bytes since the last halving
  size_t used_ = 0;
  // Hashes of the flows, compared first.
  std::array<uint32_t, kFlows> tags_{};
  std::array<uint64_t, kFlows> bytes_{};
  std::array<KeyFlow, kFlows> flows_{};
};

}  // namespace roci
