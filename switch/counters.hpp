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
  kNoNeighbour,  // the next hop does not answer ARP or neighbour solicitation, or too many frames wait for it
  kTooLong,      // for the MTU of the port it should leave by
  kQueueFull,    // of the port
  kBufferFull,   // of the switch, or the queue's part of it
  kHeadroomFull,  // of a lossless class at the port where the frame came in: its neighbour did not stop
  kEarlyDrop,     // by the class's AQM
  kNoBuffer,      // for a copy or an answer
};
inline constexpr unsigned kDropReasonCount = 20;

constexpr std::string_view drop_reason_name(DropReason reason) {
  constexpr std::array<std::string_view, kDropReasonCount> kNames = {
      "none",       "runt",         "bad_source",    "link_local",   "not_member",
      "same_port",  "no_egress",    "bad_ip",        "ttl_expired",  "no_route",
      "not_for_us", "notification", "covered_cnp",   "no_neighbour", "too_long",
      "queue_full", "buffer_full",  "headroom_full", "early_drop",   "no_buffer"};
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

// What became of samples of congestion points, of the CNMs that they led to, and of those that came from others.
enum class CnmEvent : uint8_t {
  kNoCongestion,  // sampled, and nothing to say
  // Sent:
  kSent,           // to the sampled frame's source, in the same layer 2 network
  kSentOverIp,     // as self-defined CNM to the flow's source
  kSentToOwnHost,  // to the flow's source, which is a host here and in the ToR's table
  // Not sent:
  kNoFlow,   // the sampled frame has neither a CN-TAG nor, where l3 is on, a flow that came in by a port
  kOwnKind,  // the sampled frame is itself a CNM
  kLimited,  // more than cnm_rate, or too many at once
  kNoBuffer,
  kNoRoute,  // to the source: no port is known for its MAC, or no route leads to its address
  // Self-defined CNMs that came for hosts here:
  kTranslated,
  kUnknownFlow,  // as well as of messages from here for a host here
  kMalformed,
  kTooMany,  // more than cnm_rate
  kNoPort,   // the flow is known, and the port of its host is not any more
  // The table of flows:
  kFlowLearnt,
  kFlowsFull,  // not learnt, a frame
  // CN-TAGs:
  kTagRemoved,
};
inline constexpr unsigned kCnmEventCount = 17;

constexpr std::string_view cnm_event_name(CnmEvent event) {
  constexpr std::array<std::string_view, kCnmEventCount> kNames = {
      "no_congestion", "sent",      "sent_over_ip", "sent_to_own_host", "no_flow",      "own_kind",
      "limited",       "no_buffer", "no_route",     "translated",       "unknown_flow", "malformed",
      "too_many",      "no_port",   "flow_learnt",  "flows_full",       "tag_removed"};
  return kNames[static_cast<unsigned>(event)];
}

// Of a switch.
struct SwitchCnmCounters {
  std::array<std::atomic<uint64_t>, kCnmEventCount> events{};

  [[nodiscard]] uint64_t of(CnmEvent event) const { return events[static_cast<unsigned>(event)]; }
};

// What became of the moments in which a queue with CNPs was congested, and of CNPs that others made.
enum class CnpEvent : uint8_t {
  kSent,
  // Not sent:
  kNoFlow,         // the frame, or no frame of late, was data of RoCEv2 that came in by a port
  kUnknownSender,  // it is not known who sends the flow
  kSpaced,         // told within `spacing`; with `heaviest` so were all that are known
  kLimited,        // more than `rate`, or too many at once
  kFlowsFull,      // more flows within `spacing` than it may tell
  kNoBuffer,
  kNoRoute,  // to the sender: no port is known for its MAC, or no route leads to its address
  // CNPs of others:
  kPassed,
  kSuppressed,  // dropped, since one for the same queue pair went by within `spacing`
};
inline constexpr unsigned kCnpEventCount = 10;

constexpr std::string_view cnp_event_name(CnpEvent event) {
  constexpr std::array<std::string_view, kCnpEventCount> kNames = {
      "sent",       "no_flow",   "unknown_sender", "spaced", "limited",
      "flows_full", "no_buffer", "no_route",       "passed", "suppressed"};
  return kNames[static_cast<unsigned>(event)];
}

// Of a switch.
struct SwitchCnpCounters {
  std::array<std::atomic<uint64_t>, kCnpEventCount> events{};

  [[nodiscard]] uint64_t of(CnpEvent event) const { return events[static_cast<unsigned>(event)]; }
};

// What became of subscribed packets that left a queue which was longer than `above`.
enum class IntResponseEvent : uint8_t {
  kSent,
  // Not sent:
  kUnknownSender,
  kSpaced,   // told within `spacing`
  kLimited,  // more than `rate`, or too many at once
  kNoBuffer,
  kNoRoute,
};
inline constexpr unsigned kIntResponseEventCount = 6;

constexpr std::string_view int_response_event_name(IntResponseEvent event) {
  constexpr std::array<std::string_view, kIntResponseEventCount> kNames = {
      "sent", "unknown_sender", "spaced", "limited", "no_buffer", "no_route"};
  return kNames[static_cast<unsigned>(event)];
}

// Of a switch.
struct SwitchIntResponseCounters {
  std::array<std::atomic<uint64_t>, kIntResponseEventCount> events{};

  [[nodiscard]] uint64_t of(IntResponseEvent event) const { return events[static_cast<unsigned>(event)]; }
};

// How a switch has learnt who sends which flow, or that it is somebody else than before.
struct SwitchSenderCounters {
  using Counter = std::atomic<uint64_t>;
  Counter from_packet{0}, from_cm{0}, from_acks{0};
  Counter full{0};       // could not be learnt: the table is full of others
  Counter ambiguous{0};  // acknowledgements that could have been of several flows
};

}  // namespace roci
