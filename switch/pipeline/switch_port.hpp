// Port of a switch: its VLANs, its handling of frames, its counters and its egress queues.
#pragma once

#include <bitset>

#include "port/port.hpp"
#include "switch/pipeline/counters.hpp"
#include "switch/pipeline/egress_port.hpp"
#include "switch/switch_config.hpp"

namespace roci {

// Owned by the worker of the port. Other workers may read members that do not change.
struct SwitchPort {
  SwitchPort(Port& p, const SwitchPortConfig& config, uint16_t number, uint64_t seed, uint32_t worker_number,
             const EgressPort::Context& context);
  [[nodiscard]] bool carries(uint16_t vlan) const { return member.test(vlan); }

  Port& port;
  const PortCapabilities& capabilities;
  const uint16_t index;  // number in the switch
  const uint32_t worker;
  const uint16_t native;
  const TelemetryRole role;
  const bool keeps_cn_tags;
  uint8_t cnm_points = 0;    // bitmap of classes with a QCN congestion point
  uint8_t cnp_points = 0;    // bitmap of classes that send CNPs
  std::bitset<4096> member;  // by VLAN
  SwitchPortCounters counters;
  EgressPort egress;
};

}  // namespace roci
