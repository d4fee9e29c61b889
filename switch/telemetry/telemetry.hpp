// Telemetry stage: stamps packets with in-band telemetry when they are sent (INT-MD, wire/int/telemetry_header.hpp).
// Ports at the edge add and remove the header; every port adds a hop to packets that carry it.
#pragma once

#include <rte_mbuf.h>
#include <rte_mempool.h>

#include <array>
#include <bitset>
#include <cstdint>
#include <vector>

#include "base/config.hpp"
#include "base/types.hpp"
#include "switch/pipeline/counters.hpp"
#include "wire/int/telemetry_edit.hpp"

namespace roci {

// Telemetry configuration of a switch. Without telemetry, the switch forwards packets unchanged.
struct TelemetryConfig {
  // Packets to which a source adds the header.
  enum class When : uint8_t {
    kPacket,      // all subscribed packets
    kInterval,    // the first packet of each flow in `interval`
    kCongestion,  // packets after which more than `congestion` bytes remain queued
  };
  bool enabled = false;
  uint16_t udp_port = 0;   // of packets with INT, without assignment
  uint32_t switch_id = 0;  // 20 bits
  uint16_t domain = 1;
  bool full = false;  // hops of 32 bytes instead of 16
  uint8_t hops = 16;  // limit of hops that a source sets
  When when = When::kPacket;
  Nanos interval{0};
  Bytes congestion{0};
  std::bitset<64> dscp = ~std::bitset<64>{};  // subscribed: RoCEv2 packets with these DSCPs
  bool wants_response = false;  // allows switches on the path to send responses to the sender (HPCC++ 6.3)

  // Responses that this switch sends (int_responder.hpp).
  struct Respond {
    enum class To : uint8_t { kNone, kSender, kReceiver };
    To to = To::kNone;
    Bytes above{0};           // bytes that must remain queued after the packet
    Nanos spacing = 20us;     // time without a further response for the flow, or up to twice this time
    uint32_t rate = 100'000;  // per second and worker
    std::bitset<64> dscp{};   // RoCEv2 packets with these DSCPs are subscribed without the flag

    friend bool operator==(const Respond&, const Respond&) = default;
  };
  Respond respond;

  friend bool operator==(const TelemetryConfig&, const TelemetryConfig&) = default;
};
// Whether the switch sends responses.
bool responds(const TelemetryConfig& config);
Status read_telemetry(ConfigNode& node, TelemetryConfig& config);
Status check_telemetry(const TelemetryConfig& config);

// Role of a port for telemetry.
enum class TelemetryRole : uint8_t {
  kTransit,  // between switches, or to a host that supports INT
  kSource,   // adds the header to packets that arrive here
  kSink,     // removes the header from packets that leave here
  kEdge,     // both, for a host that does not support INT
};
constexpr bool starts_telemetry(TelemetryRole role) {
  return role == TelemetryRole::kSource || role == TelemetryRole::kEdge;
}
constexpr bool ends_telemetry(TelemetryRole role) {
  return role == TelemetryRole::kSink || role == TelemetryRole::kEdge;
}

// Snapshot of a packet at the instant at which it is put on the line (HPCC++ 6.1).
struct Departure {
  uint16_t ingress = 0;
  uint16_t egress = 0;
  uint8_t traffic_class = 0;
  bool from_source = false;  // arrived at a port that adds telemetry
  bool to_sink = false;      // leaves by a port that removes it
  bool routed = false;       // by this switch
  uint16_t vlan = 0;         // in which it leaves
  Nanos arrived{0};
  Nanos now{0};
  uint64_t tx_bytes = 0;     // sent by the port before
  uint64_t queue_bytes = 0;  // that remain in its class
  BitsPerSec rate{0};
  uint16_t mtu = 0;
};

// Owned by one switch worker.
class Telemetry {
 public:
  Telemetry(const TelemetryConfig& config, rte_mempool* pool);

  [[nodiscard]] bool enabled() const { return config_.enabled; }
  // Returns the frame as it must be sent: itself or a copy that replaces it, possibly longer or shorter. Returns null,
  // and frees the frame, if a copy is required and the pool is empty, or if INT requests the sink to discard it.
  rte_mbuf* stamp(rte_mbuf* frame, const Departure& departure, SwitchPortCounters& counters);
  // Hop values of this switch for the departure.
  [[nodiscard]] HopReport report(const Departure& departure) const;

 private:
  static constexpr size_t kFlows = 4096;  // slots of kInterval; flows with the same slot share the interval
  static constexpr uint32_t kHeadroom = kIntHeaderBytes + sizeof(FullHop);

  [[nodiscard]] IntView look(const rte_mbuf* frame) const;
  // `udp` and `view` are results of look().
  [[nodiscard]] bool inserts_header(const rte_mbuf* frame, const UdpLocation& udp,
                                    const Departure& departure);
  rte_mbuf* begin(rte_mbuf* frame, IntView view, const Departure& departure, SwitchPortCounters& counters);
  rte_mbuf* extend(rte_mbuf* frame, IntView view, const Departure& departure, SwitchPortCounters& counters);
  rte_mbuf* end(rte_mbuf* frame, IntView view, SwitchPortCounters& counters);
  // Calls own_front(), and updates `view` if the frame was copied. Returns null, and frees the frame, if the pool is
  // empty.
  rte_mbuf* own(rte_mbuf* frame, uint32_t headroom, IntView& view, SwitchPortCounters& counters) const;
  void push(FrameFront& front, const IntView& view, const Departure& departure, SwitchPortCounters& counters);

  TelemetryConfig config_;
  IntSource source_;
  rte_mempool* pool_;
  std::vector<Nanos> sampled_;  // earliest next sample, by slot
};

}  // namespace roci
