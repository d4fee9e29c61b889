// Counters of a switch port. Written by the workers of the switch, readable from any thread.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string_view>

namespace roci {

// Reason of a drop. Reasons up to kNeighborUnresolved and kHeadroomFull count at the ingress port, others at the
// egress port.
enum class DropReason : uint8_t {
  kNone,
  kRunt,       // shorter than the Ethernet header and its tags
  kBadSource,  // source MAC is multicast, zero, or the switch's own
  kLinkLocal,  // to 01:80:c2:00:00:0x, which bridges do not forward (802.1Q 8.6.3): PAUSE and PFC, LLDP, STP
  kNotMember,  // the ingress port is not in the frame's VLAN
  kNotBound,   // a MAC or IP address of the sender is bound to another port, or not to the ingress port
  kSamePort,   // the destination is at the ingress port
  kNoEgress,   // the VLAN has no other port
  kBadIp,      // to be routed, with wrong version, length or header checksum
  kTtlExpired,
  kNoRoute,
  kLocalUnanswered,     // for an address of the switch, without an answer
  kNotification,        // self-defined CNM for an attached host that could not be translated
  kCovered,             // CNP shortly after another one for the same queue pair
  kHandOverFull,        // the ring to the worker of the egress port is full
  kNeighborUnresolved,  // next hop without answer to ARP or neighbor solicitation, or too many frames wait
  kTooLong,             // exceeds the MTU of the egress port
  kQueueFull,           // limit of the egress port
  kBufferFull,          // limit of the shared buffer, or of the queue's part of it
  kHeadroomFull,        // of a lossless class of the ingress port: the neighbor did not stop
  kEarlyDrop,           // by the AQM of the class
  kNoBuffer,            // for a copy or an answer
  kPortRefused,  // waiting at a port that accepts no frames: its link is down, or its peer does not receive
};
inline constexpr unsigned kDropReasonCount = 23;

constexpr std::string_view drop_reason_name(DropReason reason) {
  constexpr std::array<std::string_view, kDropReasonCount> kNames = {
      "none",         "runt",        "bad_source",     "link_local",
      "not_member",   "not_bound",   "same_port",      "no_egress",
      "bad_ip",       "ttl_expired", "no_route",       "local_unanswered",
      "notification", "covered_cnp", "hand_over_full", "neighbor_unresolved",
      "too_long",     "queue_full",  "buffer_full",    "headroom_full",
      "early_drop",   "no_buffer",   "port_refused"};
  return kNames[static_cast<unsigned>(reason)];
}

// Counters of one traffic class of an egress port.
struct SwitchClassCounters {
  using Counter = std::atomic<uint64_t>;
  Counter tx_packets{0}, tx_bytes{0};
  Counter marked{0};       // ECN-capable packets that the AQM selected, including those marked before
  Counter queue_bytes{0};  // current
  Counter queue_peak_bytes{0};
  Counter pauses_received{0};  // PFC frames that paused the class or prolonged the pause
  Counter paused_nanos{0};     // total duration of pauses
  Counter pause_storms{0};     // pauses that the watchdog ended
  Counter pauses_sent{0};      // PFC frames sent that paused the neighbor or prolonged its pause
};

struct SwitchPortCounters {
  using Counter = std::atomic<uint64_t>;
  Counter rx_packets{0}, rx_bytes{0};
  Counter tx_packets{0}, tx_bytes{0};
  Counter flooded{0};   // received frames that were sent to all ports of their VLAN
  Counter routed{0};    // received frames that a layer 3 interface forwarded
  Counter rerouted{0};  // routed frames sent to another next hop, since the flow's does not answer
  Counter answered{0};  // received frames that the switch answered: ARP, ND, echo
  // In-band telemetry of packets sent by this port: header added; hop added; header removed; omitted because of length
  // or number of hops; malformed, forwarded unchanged; copies for the sink, discarded.
  Counter telemetry_inserted{0}, telemetry_hops{0}, telemetry_stripped{0};
  Counter telemetry_too_long{0}, telemetry_malformed{0}, telemetry_discarded{0};
  Counter queue_bytes{0};  // current
  Counter queue_packets{0};
  Counter queue_peak_bytes{0};
  std::array<Counter, kDropReasonCount> drops{};
  std::array<SwitchClassCounters, 8> classes{};

  [[nodiscard]] uint64_t dropped(DropReason reason) const { return drops[static_cast<unsigned>(reason)]; }
  [[nodiscard]] uint64_t dropped() const {
    uint64_t sum = 0;
    for (const Counter& c : drops) sum += c;
    return sum;
  }
};

}  // namespace roci
