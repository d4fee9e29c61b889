// A frame on its way through the stages of the switch.
#pragma once

#include <rte_mbuf.h>

#include <cstdint>

#include "switch/counters.hpp"
#include "wire/headers.hpp"

namespace roci {

inline constexpr uint16_t kNoPort = UINT16_MAX;

struct SwitchPacket {
  rte_mbuf* frame = nullptr;   // null once it has been dropped, queued or kept by a stage
  uint16_t ingress = kNoPort;  // where drops are counted; kNoPort for what the switch makes itself
  uint16_t vlan = 0;
  uint8_t traffic_class = 0;
  Ecn ecn = Ecn::kNotEct;         // as it came in
  bool begins_telemetry = false;  // it came in where packets begin to carry telemetry
  bool from_us = false;           // routed, or an answer: it may leave by the port it came from
  bool has_cn_tag = false;        // now, behind the VLAN tag
  uint16_t ether_type = 0;        // behind the tags
  uint16_t l3_offset = 0;
  uint16_t cn_flow = 0;  // of the CN-TAG
};

}  // namespace roci
