// What a switch counts of the messages with which it tells senders of congestion. Each worker of a switch counts for
// itself, what the switch shows is the sum.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string_view>

namespace roci {

// A count for each kind of event, as values.
template <class Event, unsigned kCount>
struct EventCounts {
  std::array<uint64_t, kCount> events{};

  [[nodiscard]] uint64_t of(Event event) const { return events[static_cast<unsigned>(event)]; }
};

// The same while it is counted: written by one thread, readable from any.
template <class Event, unsigned kCount>
struct EventCounters {
  std::array<std::atomic<uint64_t>, kCount> events{};

  [[nodiscard]] std::atomic<uint64_t>& at(Event event) { return events[static_cast<unsigned>(event)]; }
  void add_to(EventCounts<Event, kCount>& sum) const {
    for (unsigned i = 0; i < kCount; ++i) sum.events[i] += events[i].load(std::memory_order_relaxed);
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
  kShaped,       // for a shaper of this switch
  kDelivered,    // as it is, to a host whose flow is not known
  kMalformed,
  kNotBelieved,  // not signed with our key, or not new
  kNoFeedback,   // says only what layer 2 cannot say
  kTooMany,      // more than cnm_rate
  kPortUnknown,  // the flow is known, and the port of its host is not any more
  // The table of flows:
  kFlowLearnt,
  kFlowsFull,  // not learnt, a frame
  // CN-TAGs:
  kTagRemoved,
};
inline constexpr unsigned kCnmEventCount = 21;

constexpr std::string_view cnm_event_name(CnmEvent event) {
  constexpr std::array<std::string_view, kCnmEventCount> kNames = {
      "no_congestion", "sent",       "sent_over_ip", "sent_to_own_host", "no_flow",      "own_kind",
      "limited",       "no_buffer",  "no_route",     "translated",       "unknown_flow", "shaped",
      "delivered",     "malformed",  "not_believed", "no_feedback",      "too_many",     "no_port",
      "flow_learnt",   "flows_full", "tag_removed"};
  return kNames[static_cast<unsigned>(event)];
}

using CnmCounters = EventCounters<CnmEvent, kCnmEventCount>;
using CnmCounts = EventCounts<CnmEvent, kCnmEventCount>;

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

using CnpCounters = EventCounters<CnpEvent, kCnpEventCount>;
using CnpCounts = EventCounts<CnpEvent, kCnpEventCount>;

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

using IntResponseCounters = EventCounters<IntResponseEvent, kIntResponseEventCount>;
using IntResponseCounts = EventCounts<IntResponseEvent, kIntResponseEventCount>;

// How a switch has learnt who sends which flow, or that it is somebody else than before.
enum class SenderEvent : uint8_t {
  kFromPacket,
  kFromCm,
  kFromAcks,
  kFull,       // could not be learnt: the table is full of others
  kAmbiguous,  // an acknowledgement that could have been of several flows
};
inline constexpr unsigned kSenderEventCount = 5;

constexpr std::string_view sender_event_name(SenderEvent event) {
  constexpr std::array<std::string_view, kSenderEventCount> kNames = {"from_packet", "from_cm", "from_acks",
                                                                      "full", "ambiguous"};
  return kNames[static_cast<unsigned>(event)];
}
using SenderCounters = EventCounters<SenderEvent, kSenderEventCount>;
using SenderCounts = EventCounts<SenderEvent, kSenderEventCount>;

}  // namespace roci
