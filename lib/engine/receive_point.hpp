// The receive side of a host as a congestion point of QCN (802.1Q 30.2): its queue are the frames that wait to be received.
// What comes in is sampled as in a switch, and whoever sent a sampled packet is told when too much waits behind it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "base/congestion_point.hpp"
#include "base/rate_limit.hpp"
#include "roci/congestion_config.hpp"
#include "wire/congestion_notification.hpp"
#include "wire/l3_cnm_guard.hpp"
#include "wire/l3_congestion_notification.hpp"

namespace roci {

// Of one worker, and owned by it.
class ReceivePoint {
 public:
  // `index`: of the worker; `workers`: that share the limit.
  ReceivePoint(const CongestionConfig& config, const MacAddress& mac, uint32_t index, uint32_t workers,
               uint64_t seed);

  // So many frames wait.
  void note_waiting(uint32_t frames) { waiting_ = frames; }
  // A packet of `bytes` has been taken out. What its sender is to be told, if it is sampled and too much waits.
  std::optional<QcnFeedback> taken(uint32_t bytes);

  // Writes the message to whoever sent `sampled`: in layer 2 if it has a CN-TAG, else through routers, if that is configured,
  // to the way `back`. How long it is; 0 when there is none, or too many.
  uint32_t write(std::span<const uint8_t> sampled, bool tagged, const QcnFeedback& feedback, RocePath back,
                 Nanos now, std::span<uint8_t, kMaxL3CnmFrame> out);

 private:
  // A frame is as many bytes to the congestion point, whose feedback is the same whatever they are.
  static constexpr int64_t kFrameUnit = 1024;

  const MacAddress mac_;
  const Be16 queue_;
  const uint16_t port_;
  const std::optional<SipKey> key_;
  CongestionPoint point_;
  RateLimit limit_;
  uint32_t waiting_ = 0;
  const Nanos time_of_day_;  // to be added to the worker's clock
  L3CnmSequence sequence_;
};

}  // namespace roci
