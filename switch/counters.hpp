// What a switch counts, per port. Written by the thread that polls the switch, readable from any.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string_view>

namespace roci {

// Why a frame did not leave the switch. Reasons up to kNoNeighbour count at the port where the frame came in, the
// others at the one where it should have gone out.
enum class DropReason : uint8_t {
  kNone,
  kRunt,       // shorter than the headers of Ethernet and its tag
  kBadSource,  // source MAC is multicast, zero, or the switch's own
  kLinkLocal,  // to 01:80:c2:00:00:0x, which no bridge forwards (802.1Q 8.6.3): PAUSE and PFC, LLDP, STP
  kNotMember,  // the port is not in the frame's VLAN
  kSamePort,   // the destination is behind the port it came from
  kNoEgress,   // no other port is in the VLAN
  kBadIp,      // to be routed: version, length or header checksum wrong
  kTtlExpired,
  kNoRoute,
  kNotForUs,      // to an address of the switch, and nothing that it answers
  kNotification,  // a self-defined CNM that came for a host here and could not be translated
  kCovered,       // a CNP, and another for the same queue pair has just gone by
  kHandOverFull,  // the worker to whom the egress port belongs takes no more
  kNoNeighbour,  // the next hop does not answer ARP or neighbour solicitation, or too many frames wait for it
  kTooLong,      // for the MTU of the port it should leave by
  kQueueFull,    // of the port
  kBufferFull,   // of the switch, or the queue's part of it
  kHeadroomFull,  // of a lossless class at the port where the frame came in: its neighbour did not stop
  kEarlyDrop,     // by the class's AQM
  kNoBuffer,      // for a copy or an answer
};
inline constexpr unsigned kDropReasonCount = 21;

constexpr std::string_view drop_reason_name(DropReason reason) {
  constexpr std::array<std::string_view, kDropReasonCount> kNames = {
      "none",          "runt",           "bad_source",   "link_local", "not_member", "same_port",
      "no_egress",     "bad_ip",         "ttl_expired",  "no_route",   "not_for_us", "notification",
      "covered_cnp",   "hand_over_full", "no_neighbour", "too_long",   "queue_full", "buffer_full",
      "headroom_full", "early_drop",     "no_buffer"};
  return kNames[static_cast<unsigned>(reason)];
}

// Of one traffic class of an egress port.
struct SwitchClassCounters {
  using Counter = std::atomic<uint64_t>;
  Counter tx_packets{0}, tx_bytes{0};
  Counter marked{0};       // ECN-capable packets that the class's AQM chose, those marked before among them
  Counter queue_bytes{0};  // now
  Counter queue_peak_bytes{0};
  Counter pauses_received{0};  // PFC frames that stopped it, or kept it stopped
  Counter paused_nanos{0};     // how long it was stopped
  Counter pause_storms{0};     // times the watchdog gave up waiting for the end of a pause
  Counter pauses_sent{0};      // PFC frames of ours that stopped the neighbour's, or kept it stopped
};

struct SwitchPortCounters {
  using Counter = std::atomic<uint64_t>;
  Counter rx_packets{0}, rx_bytes{0};
  Counter tx_packets{0}, tx_bytes{0};
  Counter flooded{0};   // frames received that went to every port of their VLAN
  Counter routed{0};    // frames received that left through a layer 3 interface
  Counter rerouted{0};  // of these by another next hop than that of their flow, which is silent
  Counter answered{0};  // frames received that the switch replied to: ARP, ND, echo
  // In-band telemetry of packets that left here: begun, a hop added, taken out; too long or too many hops for another;
  // not as it should be, and left alone; copies that ended here.
  Counter telemetry_begun{0}, telemetry_hops{0}, telemetry_ended{0};
  Counter telemetry_too_long{0}, telemetry_malformed{0}, telemetry_discarded{0};
  Counter queue_bytes{0};  // now
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
