// Configuration of in-band telemetry (INT, docs/switch.md) of a device. Switches insert the state of their queues into
// packets; the receiver removes it and returns it to the sender in acknowledgments.
#pragma once

#include <cstdint>

namespace roci {

// Packets into which this device inserts a telemetry header, if the peer supports telemetry. An edge switch may insert
// it instead.
enum class TelemetryBegin : uint8_t {
  kNone,
  kProbe,  // RTT probes
  kAll,    // also requests and READ responses
};

struct HostTelemetryConfig {
  // Destination UDP port of packets with INT, the same in the whole network, since none is assigned. 0: the device does
  // not support telemetry, and packets to that port are not RoCEv2.
  uint16_t udp_port = 0;
  uint16_t domain = 1;  // INT domain whose hops are processed
  TelemetryBegin begin = TelemetryBegin::kNone;
  // Hops for which packets of this device reserve space; packets without that space get no telemetry header.
  uint8_t hops = 5;
  // Permits congested switches to send INT responses (HPCC++ 6.3).
  bool wants_response = false;

  [[nodiscard]] bool enabled() const { return udp_port != 0; }
};

}  // namespace roci
