// Counters of a host, as one table: the enum names them for code, the names for people, and a test walks both.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string_view>

namespace roci {

enum class Counter : uint8_t {
  kRxFrames,  // taken from the port
  kRxHandedOver,  // of them, passed to the worker whose queue pair they are for, and copies all workers learn from
  kRxHandOverFull,  // lost because that worker did not keep up
  kRxRoce,          // parsed as RoCEv2 with a right ICRC
  kRxNotForUs,      // destination MAC or IP is not ours
  kRxMalformed,     // truncated, bad IP or UDP, fragment, bad version, bad length
  kRxUnknownOpcode,
  kRxIcrcErrors,
  kRxOtherProtocol,  // neither RoCEv2 nor anything a host answers
  kRxUnknownQp,
  kRxWrongSource,  // source address is not the queue pair's peer
  kRxWrongPkey,
  kRxWrongTransport,  // opcode of another transport service than the queue pair's, or of the other end of XRC
  kRxBadState,        // the queue pair's state does not take such packets
  kRxCnp,             // congestion notifications received
  kRxCeMarked,        // requests and responses that arrived with CE
  kRxWrongQkey,
  kRxUnknownGroup,     // multicast for a group that no queue pair is attached to
  kRxNoReceive,        // unreliable services: there was no receive request for the message
  kRxTooLong,          // the same: the message is longer than its receive buffer
  kRxRefused,          // UC: a length, key, range or access that is not allowed
  kRxNoMessage,        // UC: a middle or last packet of no message under way
  kMessagesAbandoned,  // UC: messages of which a part was lost
  kRxWrongSrq,  // XRC: the shared receive queue that it names is none of the target's domain, or not the message's
  kTxFrames,
  kTxNoBuffer,        // a packet waited because the buffer pool was empty
  kTxUnreachable,     // messages of unreliable services that no next hop was found for
  kLoopbackLost,      // copies for this host's own multicast members that found no room
  kRequestsReceived,  // executed request packets
  kRequestsDuplicate,
  kRequestsOutOfOrder,  // ahead of the expected PSN
  kReadReplays,         // duplicate READ requests answered again
  kAtomicReplays,       // duplicate atomics whose stored result was sent again
  kReplaysRefused,  // duplicate READs and atomics that match no remembered one, or ask for what was not sent yet
  kAcksSent,
  kNaksSequenceSent,
  kNaksInvalidSent,  // remote invalid request
  kNaksAccessSent,   // remote access error
  kNaksOperationalSent,
  kRnrNaksSent,
  kResponsesReceived,    // responses that the completer used
  kResponsesDuplicate,   // nothing new in them
  kResponsesGhost,       // acknowledge what was never sent
  kResponsesOutOfOrder,  // READ responses with a gap in front of them
  kNaksSequenceReceived,
  kNaksEarly,  // of them, those about packets sent again less than a round trip ago
  kNaksFatalReceived,
  kRnrNaksReceived,
  kTimeouts,
  kTailProbes,  // of the packets sent again, those that ended a silence before the time-out (selective repeat)
  kPacketsRetransmitted,
  kReadsReissued,
  kWritesPlaced,  // by this host in memory of a peer's process (port/placement.hpp); no packets
  kCqOverflows,
  kPacketsKept,   // requests that arrived behind a gap and were kept (selective repeat)
  kReadAcksSent,  // CC_RRACK
  kReadAcksReceived,
  kProbesSent,  // CC_PROBE
  kProbesAnswered,
  kExtensionsRefused,  // packets with an extension block that was not agreed on or is malformed
  kFeedbackUnsigned,   // acknowledgements whose MAC is wrong, missing or old
  kMadsSent,           // management datagrams of the capability exchange
  kMadsReceived,
  kMadsRefused,         // for another class, malformed, or answers to nothing
  kMadsDropped,         // more than are looked at in a second
  kFeedbackImpossible,  // extension values that say what cannot be
  kWindowsImpossible,  // windows of receivers that cannot be: of nothing, or of all there is; the one before stays
  kEventsLost,         // asynchronous events that found their queue full
  kIntStripped,        // packets that came with in-band telemetry, which was taken out of them
  kIntMalformed,       // dropped, because it could not be read
  kIntDiscarded,       // dropped, because it said that it is a copy for the end of its way
  kIntNoBuffer,        // lost, because there was no buffer for a copy of the host's own
  kIntBegun,           // packets that were sent with telemetry
  kIntTooLong,         // and those that should have been, and would have been too long with it
  kIntEchoesSent,  // INT-ECHO
  kIntEchoesReceived,
  kIntEchoesOld,         // of them, those that something newer had overtaken
  kIntResponsesTaken,    // CC_INT_RESP of switches
  kIntResponsesRefused,  // about packets that are not under way, or too many
  kPausesReceived,       // PFC frames about priorities of ours
  kPausesIgnored,        // other MAC control frames; all of them without flow control
  kPauseStorms,          // times the watchdog gave up waiting for the end of a pause
  kPausesSent,           // PFC frames to the neighbour, those that let it go on among them
  kCnmsTaken,            // congestion notification messages about flows of ours
  kCnmsMalformed,        // dropped: they could not be read
  kCnmsUnsigned,         // their MAC is wrong or missing
  kCnmsOld,              // signed, and heard before, overtaken, or of another time
  kCnmsUnknownFlow,      // about no flow that there is now
  kCnmsMismatched,       // the sampled packet is none that the flow has sent lately
  kCnmsUnproven,         // so little of the sampled packet that it could be any
  kCnmsTooMany,          // more than cnm_rate
  kCnmsSent,             // to senders, because packets wait to be received
  kCnmsSentOverIp,       // the same through routers
  kCnmsNotSent,          // too many, no buffer, or a sender that could not be told
  kCnFlowsFull,          // queue pairs that got no flow number, so their packets have no CN-TAG
  kRpCnpsHandled,        // of kRxCnp, those for queue pairs with congestion control
  kRpCnpsIgnored,        // and the others
  kNpCnpsSent,           // CNPs to senders whose packets arrived with CE
  kNpCnpsNotSent,        // for want of a buffer, or of room: the port has taken nothing for a while
  kMemoryFaults,         // copies from or to registered memory that was not there any more
  kCount,
};
inline constexpr size_t kCounterCount = static_cast<size_t>(Counter::kCount);
std::string_view counter_name(Counter counter);

// Written by one thread at a time, read by any: relaxed stores, no locked instruction.
class Counters {
 public:
  void add(Counter counter, uint64_t by = 1) {
    auto& value = values_[static_cast<size_t>(counter)];
    value.store(value.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
  }
  [[nodiscard]] uint64_t get(Counter counter) const {
    return values_[static_cast<size_t>(counter)].load(std::memory_order_relaxed);
  }

 private:
  std::array<std::atomic<uint64_t>, kCounterCount> values_{};
};

}  // namespace roci
