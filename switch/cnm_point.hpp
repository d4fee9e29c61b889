// The congestion point of one class of one port, with what its CNMs say beside how congested it is (L3QCN 6).
#pragma once

#include <optional>

#include "base/congestion_point.hpp"
#include "switch/available_rate.hpp"
#include "switch/switch_port.hpp"
#include "wire/l3_congestion_notification.hpp"

namespace roci {

// A frame that has been sampled, as the congestion point sees its queue.
struct CnmSample {
  QcnFeedback feedback;
  L3CnmTlvs tlvs;           // only self-defined CNMs bear them
  bool says_rates = false;  // among them

  // Whether there is anything to say to who understands self-defined CNMs; to others only when it is congested.
  [[nodiscard]] bool says_something() const { return feedback.is_congested() || says_rates; }
};

// Owned by the switch's thread.
class CnmPoint {
 public:
  // Of a class of `port`, which is the switch's `number`-th. `seed`: of the distances between samples.
  CnmPoint(const SwitchPortConfig& port, uint16_t number, uint8_t traffic_class, uint32_t switch_id,
           uint64_t seed);

  // Whether it answers packets through routers too.
  [[nodiscard]] bool answers_l3() const { return config_.l3; }
  // A frame of `bytes` has been put into the queue, which is one of `out`.
  std::optional<CnmSample> queued(uint32_t bytes, const SwitchPort& out, Nanos now);

 private:
  [[nodiscard]] L3CnmTlvs say(const SwitchPort& out, Nanos now);
  [[nodiscard]] uint64_t sent_by_others(const SwitchPort& out) const;

  QcnConfig config_;
  CongestionPoint queue_;
  std::optional<AvailableRate> rate_;  // where CNMs say rates
  uint8_t others_ = 0;                 // classes that this one shares the line with, or waits for
  uint32_t switch_id_;
  uint16_t number_;
  uint8_t traffic_class_;
  uint32_t frames_ = 0;  // that have come, modulo 2^32
};

}  // namespace roci
