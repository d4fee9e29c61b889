// Frame in the forwarding pipeline of the switch.
#pragma once

#include <rte_mbuf.h>

#include <cstdint>

#include "switch/pipeline/counters.hpp"
#include "wire/headers/headers.hpp"

namespace roci {

inline constexpr uint16_t kNoPort = UINT16_MAX;

struct SwitchPacket {
  rte_mbuf* frame = nullptr;   // null after a stage has dropped, queued or stored the frame
  uint16_t ingress = kNoPort;  // port that counts drops; kNoPort for generated frames
  uint16_t vlan = 0;
  uint8_t traffic_class = 0;
  Ecn ecn = Ecn::kNotEct;         // as received
  bool starts_telemetry = false;  // arrived at a port that adds telemetry
  bool originated = false;        // routed or generated: may leave by its ingress port
  bool flooded = false;           // sent to all ports of its VLAN
  bool has_cn_tag = false;        // currently, after the VLAN tag
  uint16_t ether_type = 0;        // after the tags
  uint16_t l3_offset = 0;
  uint16_t cn_flow = 0;  // of the CN-TAG
};

}  // namespace roci
