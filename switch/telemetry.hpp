// The stage that stamps packets with in-band telemetry as they leave (INT-MD, wire/telemetry_header.hpp): at the edge it
// begins and ends it, everywhere it adds a hop to packets that carry it.
#pragma once

#include <rte_mbuf.h>
#include <rte_mempool.h>

#include <array>
#include <bitset>
#include <cstdint>
#include <vector>

#include "base/config.hpp"
#include "base/types.hpp"
#include "switch/counters.hpp"
#include "wire/telemetry_edit.hpp"

namespace roci {

// What a switch says to packets. A switch without it forwards them unchanged.
struct TelemetryConfig {
  // Which packets of a source begin to carry it.
  enum class When : uint8_t {
    kPacket,      // all that are subscribed
    kInterval,    // of each flow the first in `interval`
    kCongestion,  // those that leave more than `congestion` bytes behind
  };
  bool enabled = false;
  uint16_t udp_port = 0;   // of packets with INT; none is assigned
  uint32_t switch_id = 0;  // 20 bits
  uint16_t domain = 1;
  bool full = false;  // hops of 32 bytes instead of 16
  uint8_t hops = 16;  // that a source allows
  When when = When::kPacket;
  Nanos interval{0};
  Bytes congestion{0};
  std::bitset<64> dscp = ~std::bitset<64>{};  // subscribed: RoCEv2 packets of these
  bool wants_response = false;  // switches on the way may answer the sender themselves (HPCC++ 6.3)

  // What this switch answers itself (int_responder.hpp).
  struct Respond {
    enum class To : uint8_t { kNobody, kSender, kReceiver };
    To to = To::kNobody;
    Bytes above{0};           // only packets that leave more behind them
    Nanos spacing = 20us;     // in which a sender hears nothing more, or up to twice as long
    uint32_t rate = 100'000;  // a second, of the whole switch
    std::bitset<64> dscp{};   // RoCEv2 packets of these are subscribed without telemetry's flag

    friend bool operator==(const Respond&, const Respond&) = default;
  };
  Respond respond;

  friend bool operator==(const TelemetryConfig&, const TelemetryConfig&) = default;
};
// Whether it answers at all.
bool responds(const TelemetryConfig& config);
Status read_telemetry(ConfigNode& node, TelemetryConfig& config);
Status check_telemetry(const TelemetryConfig& config);

// What a port is to telemetry.
enum class TelemetryRole : uint8_t {
  kTransit,  // between switches, or to a host that knows INT
  kSource,   // packets that come in here begin to carry it
  kSink,     // packets that leave here are as their sender made them
  kEdge,     // both: a host that knows nothing of INT
};
constexpr bool begins_telemetry(TelemetryRole role) {
  return role == TelemetryRole::kSource || role == TelemetryRole::kEdge;
}
constexpr bool ends_telemetry(TelemetryRole role) {
  return role == TelemetryRole::kSink || role == TelemetryRole::kEdge;
}

// A packet in the moment in which it is put onto the line: one snapshot (HPCC++ 6.1).
struct Departure {
  uint16_t ingress = 0;
  uint16_t egress = 0;
  uint8_t traffic_class = 0;
  bool from_source = false;  // it came in by a port that begins telemetry
  bool to_sink = false;      // it leaves by one that ends it
  bool routed = false;       // by this switch
  uint16_t vlan = 0;         // that it leaves in
  Nanos arrived{0};
  Nanos now{0};
  uint64_t tx_bytes = 0;     // by the port before it
  uint64_t queue_bytes = 0;  // in its class behind it
  BitsPerSec rate{0};
  uint16_t mtu = 0;
};

// Owned by the switch's thread.
class Telemetry {
 public:
  Telemetry(const TelemetryConfig& config, rte_mempool* pool);

  [[nodiscard]] bool enabled() const { return config_.enabled; }
  // The frame as it is to leave: itself or a copy in its place, longer or shorter; null, and freed, when there was no
  // buffer for the copy or INT says that the sink is to discard it.
  rte_mbuf* stamp(rte_mbuf* frame, const Departure& departure, SwitchPortCounters& counters);
  // What this switch says of the moment.
  [[nodiscard]] HopReport report(const Departure& departure) const;

 private:
  static constexpr size_t kFlows = 4096;  // of kInterval; two that share a place share the interval
  static constexpr uint32_t kHeadroom = kIntHeaderBytes + sizeof(FullHop);

  [[nodiscard]] IntView look(const rte_mbuf* frame) const;
  // `udp` and `view` are what look() has found in the frame.
  [[nodiscard]] bool begins(const rte_mbuf* frame, const UdpLocation& udp, const Departure& departure);
  rte_mbuf* begin(rte_mbuf* frame, IntView view, const Departure& departure, SwitchPortCounters& counters);
  rte_mbuf* extend(rte_mbuf* frame, IntView view, const Departure& departure, SwitchPortCounters& counters);
  rte_mbuf* end(rte_mbuf* frame, IntView view, SwitchPortCounters& counters);
  // Null, and the frame freed, when there was no buffer; of a copy `view` is what look() finds in it.
  rte_mbuf* own(rte_mbuf* frame, uint32_t headroom, IntView& view, SwitchPortCounters& counters) const;
  void push(FrameFront& front, const IntView& view, const Departure& departure, SwitchPortCounters& counters);

  TelemetryConfig config_;
  IntSource source_;
  rte_mempool* pool_;
  std::vector<Nanos> sampled_;  // by flow: not before then
};

}  // namespace roci
