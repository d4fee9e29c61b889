// Event counters of congestion notification. Each worker of a switch counts separately; the switch reports the sums.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string_view>

namespace roci {

// Count per event, as values.
template <class Event, unsigned kCount>
struct EventCounts {
  std::array<uint64_t, kCount> events{};

  [[nodiscard]] uint64_t of(Event event) const { return events[static_cast<unsigned>(event)]; }
};

// Counter per event: written by one thread, readable from any.
template <class Event, unsigned kCount>
struct EventCounters {
  std::array<std::atomic<uint64_t>, kCount> events{};

  [[nodiscard]] std::atomic<uint64_t>& at(Event event) { return events[static_cast<unsigned>(event)]; }
  void add_to(EventCounts<Event, kCount>& sum) const {
    for (unsigned i = 0; i < kCount; ++i) sum.events[i] += events[i].load(std::memory_order_relaxed);
  }
};

// Results of congestion point samples, of the CNMs that they caused, and of received CNMs.
enum class CnmEvent : uint8_t {
  kNoCongestion,  // sampled; no message required
  // Sent:
  kSent,           // to the source of the sampled frame, in layer 2
  kSentOverIp,     // as self-defined CNM to the source of the flow
  kSentToOwnHost,  // in layer 2 to the source of the flow, an attached host in the ToR table
  // Not sent:
  kNoFlow,      // no CN-TAG, and no IP flow or l3 is off; or the switch generated the frame
  kSampledCnm,  // the sampled frame is a CNM
  kLimited,     // more than cnm_rate, or the outbox is full
  kNoBuffer,
  kNoRoute,  // no port is known for the source's MAC, or no route leads to its address
  // Self-defined CNMs received for attached hosts:
  kTranslated,
  kUnknownFlow,  // also of this switch's own messages for an attached host
  kShaped,       // for a shaper of this switch
  kDelivered,    // forwarded unchanged, to a host whose flow is unknown
  kMalformed,
  kNotAuthentic,  // not signed with the key, or not new
  kNoFeedback,    // has only values that layer 2 cannot carry
  kTooMany,       // more than cnm_rate
  kPortUnknown,   // the flow is known, but no longer the port of its host
  // ToR table:
  kFlowLearned,
  kFlowsFull,  // not learned; counted per frame
  // CN-TAGs:
  kTagRemoved,
};
inline constexpr unsigned kCnmEventCount = 21;

constexpr std::string_view cnm_event_name(CnmEvent event) {
  constexpr std::array<std::string_view, kCnmEventCount> kNames = {
      "no_congestion", "sent",       "sent_over_ip",  "sent_to_own_host", "no_flow",      "sampled_cnm",
      "limited",       "no_buffer",  "no_route",      "translated",       "unknown_flow", "shaped",
      "delivered",     "malformed",  "not_authentic", "no_feedback",      "too_many",     "port_unknown",
      "flow_learned",  "flows_full", "tag_removed"};
  return kNames[static_cast<unsigned>(event)];
}

using CnmCounters = EventCounters<CnmEvent, kCnmEventCount>;
using CnmCounts = EventCounts<CnmEvent, kCnmEventCount>;

// Results of congested queues with CNPs, and of CNPs of other devices.
enum class CnpEvent : uint8_t {
  kSent,
  // Not sent:
  kNoFlow,         // the frame is not RoCEv2 data from a port; for `heaviest`: no recent frame is
  kUnknownSender,  // the source queue pair of the flow is not known
  kSpaced,         // notified within `spacing`; for `heaviest`: all known flows
  kLimited,        // more than `rate`, or the outbox is full
  kFlowsFull,      // more flows within `spacing` than `senders.flows`
  kNoBuffer,
  kNoRoute,  // no port is known for the sender's MAC, or no route leads to its address
  // CNPs of receivers and other switches:
  kPassed,
  kSuppressed,  // dropped: another CNP for the queue pair passed within `spacing`
};
inline constexpr unsigned kCnpEventCount = 10;

constexpr std::string_view cnp_event_name(CnpEvent event) {
  constexpr std::array<std::string_view, kCnpEventCount> kNames = {
      "sent",       "no_flow",   "unknown_sender", "spaced", "limited",
      "flows_full", "no_buffer", "no_route",       "passed", "suppressed"};
  return kNames[static_cast<unsigned>(event)];
}

using CnpCounters = EventCounters<CnpEvent, kCnpEventCount>;
using CnpCounts = EventCounts<CnpEvent, kCnpEventCount>;

// Results of subscribed packets that left a queue longer than `above`.
enum class IntResponseEvent : uint8_t {
  kSent,
  // Not sent:
  kUnknownSender,
  kSpaced,   // notified within `spacing`
  kLimited,  // more than `rate`, or the outbox is full
  kNoBuffer,
  kNoRoute,
};
inline constexpr unsigned kIntResponseEventCount = 6;

constexpr std::string_view int_response_event_name(IntResponseEvent event) {
  constexpr std::array<std::string_view, kIntResponseEventCount> kNames = {
      "sent", "unknown_sender", "spaced", "limited", "no_buffer", "no_route"};
  return kNames[static_cast<unsigned>(event)];
}

using IntResponseCounters = EventCounters<IntResponseEvent, kIntResponseEventCount>;
using IntResponseCounts = EventCounts<IntResponseEvent, kIntResponseEventCount>;

// Sources from which a switch learned the sender of a flow, or its change.
enum class SenderEvent : uint8_t {
  kFromPacket,
  kFromCm,
  kFromAcks,
  kFull,       // not learned: the table is full
  kAmbiguous,  // acknowledgment that fits several flows
  kOtherPort,  // not learned: the packet arrived at another port than the flow
};
inline constexpr unsigned kSenderEventCount = 6;

constexpr std::string_view sender_event_name(SenderEvent event) {
  constexpr std::array<std::string_view, kSenderEventCount> kNames = {
      "from_packet", "from_cm", "from_acks", "full", "ambiguous", "other_port"};
  return kNames[static_cast<unsigned>(event)];
}
using SenderCounters = EventCounters<SenderEvent, kSenderEventCount>;
using SenderCounts = EventCounts<SenderEvent, kSenderEventCount>;

}  // namespace roci
