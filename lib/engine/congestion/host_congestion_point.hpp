// The receive side of a host as a QCN congestion point (802.1Q 30.2). Its queue is the set of
// frames that wait to be received. Received packets are sampled as in a switch, and the sender
// of a sampled packet is notified if the queue is congested.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "base/congestion_point.hpp"
#include "base/time/rate_limit.hpp"
#include "roci/congestion_config.hpp"
#include "wire/cnm/congestion_notification.hpp"
#include "wire/cnm/l3_cnm_guard.hpp"
#include "wire/cnm/l3_congestion_notification.hpp"

namespace roci {

// Congestion point of one worker, which owns it.
class HostCongestionPoint {
 public:
  // `index`: of the worker; `workers`: number of workers that share the rate limit.
  HostCongestionPoint(const CongestionConfig& config, const MacAddress& mac, uint32_t index, uint32_t workers,
                      uint64_t seed);

  // Sets the number of waiting frames.
  void note_waiting(uint32_t frames) { waiting_ = frames; }
  // A packet of `bytes` was received. Returns the feedback for its
  // sender if the packet is sampled and the queue is congested.
  std::optional<QcnFeedback> taken(uint32_t bytes);

  // Writes the notification for the sender of `sampled`: in layer 2 if the frame has a CN-TAG, else in UDP to `back`,
  // if configured. Returns the frame length; 0 if there is no notification or the rate limit is exceeded.
  uint32_t write(std::span<const uint8_t> sampled, bool tagged, const QcnFeedback& feedback, RocePath back,
                 Nanos now, std::span<uint8_t, kMaxL3CnmFrame> out);

 private:
  // Assumed frame length in bytes. The feedback of the congestion point does not depend on it.
  static constexpr int64_t kFrameUnit = 1024;

  const MacAddress mac_;
  const Be16 queue_;
  const uint16_t port_;
  const std::optional<SipKey> key_;
  CongestionPoint point_;
  RateLimit limit_;
  uint32_t waiting_ = 0;
  const Nanos time_of_day_;  // offset from the worker's clock
  L3CnmSequence sequence_;
};

}  // namespace roci
