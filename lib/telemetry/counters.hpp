// Table of the counters of a host. The enumeration is used in code, counter_name() in output; a test compares both.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string_view>

namespace roci {

enum class Counter : uint8_t {
  kRxFrames,  // received from the port
  // Of them, passed to the worker of their queue pair; and copies for all workers.
  kRxHandedOver,
  kRxHandOverFull,  // dropped because that worker did not keep up
  kRxRoce,          // parsed as RoCEv2 with a correct ICRC
  kRxNotForHost,    // destination MAC or IP is not this host's
  kRxMalformed,     // truncated, bad IP or UDP, fragment, bad version, bad length
  kRxUnknownOpcode,
  kRxIcrcErrors,
  kRxOtherProtocol,  // neither RoCEv2 nor another protocol of the host
  kRxSteered,        // passed to a raw packet queue pair by a flow rule
  kRxUnknownQp,
  kRxWrongSource,  // the source address is not the queue pair's peer
  kRxWrongPkey,
  kRxWrongTransport,   // opcode of another transport service, or of the other role of XRC
  kRxBadState,         // the state of the queue pair does not accept such packets
  kRxUnauthenticated,  // RC: authentication is required and not established with the peer
  kRxCnp,              // CNPs received
  kRxCeMarked,         // requests and responses that arrived with CE
  kRxWrongQkey,
  kRxUnknownGroup,     // multicast group without an attached queue pair
  kRxNoReceive,        // UC, UD, raw packets: no receive request for the message
  kRxTooLong,          // UC, UD, raw packets: the message is longer than its receive buffer
  kRxRefused,          // UC: length, key, range or access not allowed; UD: length
  kRxNoMessage,        // UC: middle or last packet without a message in progress
  kMessagesAbandoned,  // UC: messages with a lost part
  // XRC: the shared receive queue is not in the target's domain, or is not that of the message.
  kRxWrongSrq,
  kTxFrames,
  kTxNoBuffer,        // a packet waited because the buffer pool was empty
  kTxUnreachable,     // messages of unreliable services without a next hop
  kLoopbackLost,      // copies for multicast members on this host: dropped, no space or buffer
  kRequestsReceived,  // request packets that were executed
  kRequestsDuplicate,
  kRequestsOutOfOrder,  // ahead of the expected PSN
  kReadReplays,         // duplicate READ requests that were answered again
  kAtomicReplays,       // duplicate atomics whose stored result was sent again
  // Duplicate READs and atomics without a stored request, or beyond the responses sent.
  kReplaysRefused,
  kAcksSent,
  kNaksSequenceSent,
  kNaksInvalidSent,  // remote invalid request
  kNaksAccessSent,   // remote access error
  kNaksOperationalSent,
  kRnrNaksSent,
  kResponsesReceived,    // responses that the requester processed
  kResponsesDuplicate,   // without new information
  kResponsesGhost,       // for packets that were never sent, or with reserved codes
  kResponsesOutOfOrder,  // READ responses after a gap
  kNaksSequenceReceived,
  kNaksEarly,  // of them: for packets that were retransmitted less than a round trip ago
  kNaksFatalReceived,
  kRnrNaksReceived,
  kTimeouts,
  // Of the retransmitted packets: those sent after a silence, before the time-out (selective repeat).
  kTailProbes,
  kPacketsRetransmitted,
  kReadsReissued,
  kWritesPlaced,  // by this host, without packets, in memory of a peer's process (port/placement.hpp)
  kCqOverflows,
  kPacketsKept,         // requests received after a gap and stored (selective repeat)
  kPacketsConflicting,  // pairs of different requests with one PSN after a gap; both are dropped (selective repeat)
  kReadAcksSent,        // CC_RRACK
  kReadAcksReceived,
  kProbesSent,         // CC_PROBE
  kProbesAnswered,     // CC_PROBE_RESP sent
  kExtensionsRefused,  // packets with an extension block that was not agreed on or is malformed
  kFeedbackUnsigned,   // acknowledgments whose MAC is wrong, missing or old
  kMadsSent,           // management datagrams: capability exchange and connection manager
  kMadsReceived,
  kMadsRefused,         // another class, malformed, or response without a request
  kMadsDropped,         // above the rate limit
  kFeedbackImpossible,  // impossible extension values
  // Impossible windows of receivers: 0, or the maximum of the field. The previous window stays valid.
  kWindowsImpossible,
  kEventsLost,     // asynchronous events dropped because the queue was full
  kIntStripped,    // packets from which in-band telemetry was removed
  kIntMalformed,   // dropped: malformed telemetry
  kIntDiscarded,   // dropped: copy for the telemetry sink
  kIntNoBuffer,    // dropped: no buffer for a copy
  kIntStarted,     // packets sent with a telemetry header
  kIntTooLong,     // packets without one because they would have been too long
  kIntEchoesSent,  // INT-ECHO
  kIntEchoesReceived,
  kIntEchoesOld,         // of them: older than the last one
  kIntResponsesTaken,    // CC_INT_RESP of switches
  kIntResponsesRefused,  // for packets that are not in flight, or above the limit
  kPausesReceived,       // PFC frames for priorities with flow control
  kPausesIgnored,        // other MAC control frames; without flow control all of them
  kPauseStorms,          // the watchdog ended a pause
  kPausesSent,           // PFC frames to the neighbor, including those that resume it
  kNeighborClaims,       // ARP and ND messages with another MAC for a confirmed neighbor: not adopted
  kCnmsTaken,            // CNMs for flows of this host that were accepted
  kCnmsMalformed,        // dropped: malformed
  kCnmsUnsigned,         // dropped: wrong or missing MAC
  kCnmsOld,              // dropped: signed, but replayed, reordered or outside the time window
  kCnmsUnknownFlow,      // dropped: unknown flow
  kCnmsMismatched,       // dropped: the flow did not recently send the sampled packet
  kCnmsUnproven,         // dropped: too little of the sampled packet to verify it
  kCnmsTooMany,          // dropped: above cnm_rate
  kCnmsSent,             // to senders, because frames wait to be received
  kCnmsSentOverIp,       // the same, through routers
  kCnmsNotSent,          // above the limit, no buffer, or sender unknown
  kCnFlowsFull,          // queue pairs without a flow number, whose packets have no CN-TAG
  kRpCnpsHandled,        // of kRxCnp: for queue pairs with congestion control
  kRpCnpsIgnored,        // of kRxCnp: for RC, XRC and UC queue pairs without it, or with `ignore_cnps`
  kNpCnpsSent,           // CNPs to senders of packets with CE
  kNpCnpsNotSent,        // no buffer, or the port has not accepted frames for a while
  kMemoryFaults,         // copies from or to registered memory that was unmapped
  kCount,
};
inline constexpr size_t kCounterCount = static_cast<size_t>(Counter::kCount);
std::string_view counter_name(Counter counter);

// Counters with one writer thread at a time and any number of readers: relaxed stores, no locked instructions.
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
