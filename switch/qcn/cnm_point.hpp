// Congestion point of one class of one port, with the additional values that its CNMs report (L3QCN 6).
#pragma once

#include <optional>

#include "base/congestion_point.hpp"
#include "switch/pipeline/switch_port.hpp"
#include "switch/qcn/available_rate.hpp"
#include "wire/cnm/l3_congestion_notification.hpp"

namespace roci {

// Sample of a congestion point's queue.
struct CnmSample {
  QcnFeedback feedback;
  L3CnmTlvs tlvs;          // for self-defined CNMs only
  bool has_rates = false;  // `tlvs` contains rates

  // Whether a self-defined CNM is due. A layer 2 CNM also requires congestion.
  [[nodiscard]] bool has_content() const { return feedback.is_congested() || has_rates; }
};

// Owned by one switch worker.
class CnmPoint {
 public:
  // For a class of `port`, which has the index `number` in the switch. `seed` of the distances between samples.
  CnmPoint(const SwitchPortConfig& port, uint16_t number, uint8_t traffic_class, uint32_t switch_id,
           uint64_t seed);

  // Whether it also answers packets that came through routers.
  [[nodiscard]] bool answers_l3() const { return config_.l3; }
  // Called after a frame of `bytes` was added to the queue of `out`. Returns a sample if one is due.
  std::optional<CnmSample> queued(uint32_t bytes, const SwitchPort& out, Nanos now);

 private:
  [[nodiscard]] L3CnmTlvs make_tlvs(const SwitchPort& out, Nanos now);
  [[nodiscard]] uint64_t sent_by_others(const SwitchPort& out) const;

  QcnConfig config_;
  CongestionPoint queue_;
  std::optional<AvailableRate> rate_;  // present if CNMs report rates
  uint8_t others_ = 0;                 // bitmap of classes that share the line with this one or precede it
  uint32_t switch_id_;
  uint16_t number_;
  uint8_t traffic_class_;
  uint32_t frames_ = 0;  // queued so far, modulo 2^32
};

}  // namespace roci
