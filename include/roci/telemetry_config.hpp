// What a device does with in-band telemetry (INT, docs/switch.md): switches write into packets what their queues are, the
// receiver takes that out and returns it to the sender with its acknowledgements.
#pragma once

#include <cstdint>

namespace roci {

// Which packets of this device begin to carry it, where the peer knows it too. A switch at the edge may begin it instead.
enum class TelemetryBegin : uint8_t {
  kNone,
  kProbe,  // those that ask for a round trip beside the data
  kAll,    // requests and READ responses too
};

struct HostTelemetryConfig {
  // UDP port of packets with INT, on which the whole network has to agree, since none is assigned. 0: the device knows
  // nothing of it, and what comes to that port is not RoCEv2.
  uint16_t udp_port = 0;
  uint16_t domain = 1;  // whose hops are understood
  TelemetryBegin begin = TelemetryBegin::kNone;
  uint8_t hops = 5;  // that packets begun here have room for; packets without that room do not begin
  bool wants_response = false;  // congested switches on the way may answer themselves (HPCC++ 6.3)

  [[nodiscard]] bool enabled() const { return udp_port != 0; }
};

}  // namespace roci
