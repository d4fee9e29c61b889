// A port of a switch: what belongs to its VLANs and how it treats frames, its counters and the queues behind it.
#pragma once

#include <bitset>

#include "port/port.hpp"
#include "switch/counters.hpp"
#include "switch/egress_port.hpp"
#include "switch/switch_config.hpp"

namespace roci {

// Owned by the worker whose port it is; of the others each may read what does not change.
struct SwitchPort {
  SwitchPort(Port& p, const SwitchPortConfig& config, uint16_t number, uint64_t seed, uint32_t worker_number,
             const EgressPort::Surroundings& surroundings);
  [[nodiscard]] bool carries(uint16_t vlan) const { return member.test(vlan); }

  Port& port;
  const PortCapabilities& capabilities;
  const uint16_t index;  // in its switch
  const uint32_t worker;
  const uint16_t native;
  const TelemetryRole role;
  const bool keeps_cn_tags;
  uint8_t cnm_points = 0;    // classes with a congestion point of QCN, a bit for each
  uint8_t cnp_points = 0;    // classes that send CNPs
  std::bitset<4096> member;  // VLANs
  SwitchPortCounters counters;
  EgressPort egress;
};

}  // namespace roci
