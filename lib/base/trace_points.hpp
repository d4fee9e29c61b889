// Trace points of the data path: USDT probes of the provider `roci`. gdb, perf, bpftrace and SystemTap attach to them
// in a running program (docs/tracing.md). This header is the complete list.
//
// A probe that no tool is attached to is one nop instruction. Its arguments are values that the caller has already
// loaded or computed. A probe fires before the traced step becomes visible to other threads, so that the probes of a
// work request are in order across threads. Without <sys/sdt.h> the functions are empty.
//
// QPN: number of the local queue pair. Work request opcodes, completion opcodes and completion statuses have the values
// of verbs; packet opcodes and syndromes those of the BTH and the AETH.
#pragma once

#include <cstdint>

#ifdef ROCI_TRACE_POINTS
#include <sys/sdt.h>
// As STAP_PROBEn, with `asm inline`: GCC estimates the size of an asm statement from its number of lines. A note has about
// fifty lines, so GCC would inline less. The empty last argument avoids a warning of Clang.
#define ROCI_PROBE(n, name, ...)                                                              \
  do {                                                                                        \
    __asm__ inline volatile(                                                                  \
        _SDT_ASM_BODY(roci, name, _SDT_ASM_ARGS, (n), )::_SDT_ASM_OPERANDS_##n(__VA_ARGS__)); \
    __asm__ inline volatile(_SDT_ASM_BASE);                                                   \
  } while (false)
#else
#define ROCI_PROBE(n, name, ...) (roci::trace::unused(__VA_ARGS__))
#endif

namespace roci::trace {

template <class... Arguments>
constexpr void unused(const Arguments&... /*arguments*/) {}

// Application: a work request was checked and copied into the send queue.
[[gnu::always_inline]] inline void send_posted(uint32_t qpn, uint64_t wr_id, uint32_t opcode,
                                               uint32_t length) {
  ROCI_PROBE(4, send_posted, qpn, wr_id, opcode, length);
}

// Application: a receive request was copied into the queue pair's receive queue. `length`: bytes of its buffers.
[[gnu::always_inline]] inline void recv_posted(uint32_t qpn, uint64_t wr_id, uint32_t length) {
  ROCI_PROBE(3, recv_posted, qpn, wr_id, length);
}

// Application: the same for a shared receive queue, with its number.
[[gnu::always_inline]] inline void srq_recv_posted(uint32_t srqn, uint64_t wr_id, uint32_t length) {
  ROCI_PROBE(3, srq_recv_posted, srqn, wr_id, length);
}

// Requester: a work request has its first PSN. `packets`: number of its PSNs; 0 on UC, where it is not known yet.
[[gnu::always_inline]] inline void request_started(uint32_t qpn, uint64_t wr_id, uint32_t psn,
                                                   uint32_t packets) {
  ROCI_PROBE(4, request_started, qpn, wr_id, psn, packets);
}

// Requester: a WRITE was copied into the peer's memory (placement by the sender) and has no packets.
[[gnu::always_inline]] inline void request_placed(uint32_t qpn, uint64_t wr_id, uint32_t length) {
  ROCI_PROBE(3, request_placed, qpn, wr_id, length);
}

// Requester and responder: headers and payload of a packet were written. `length`: bytes of the payload and
// of the extension block.
[[gnu::always_inline]] inline void packet_built(uint32_t qpn, uint32_t psn, uint8_t opcode, uint32_t length) {
  ROCI_PROBE(4, packet_built, qpn, psn, opcode, length);
}

// Requester: the last packet of a work request is staged for the port; again at its retransmission. `packet`: number of
// that packet in the request, starting at 0.
[[gnu::always_inline]] inline void request_sent(uint32_t qpn, uint64_t wr_id, uint32_t packet) {
  ROCI_PROBE(3, request_sent, qpn, wr_id, packet);
}

// Worker: staged frames were passed to the port, which accepted the first `accepted` of them.
[[gnu::always_inline]] inline void burst_sent(uint32_t frames, uint32_t accepted) {
  ROCI_PROBE(2, burst_sent, frames, accepted);
}

// Requester (responses) and responder (requests): a packet of the peer, with a valid ICRC, will be processed.
[[gnu::always_inline]] inline void packet_received(uint32_t qpn, uint32_t psn, uint8_t opcode) {
  ROCI_PROBE(3, packet_received, qpn, psn, opcode);
}

// Responder: a request packet was executed; for a READ, its response was scheduled. RC and XRC.
[[gnu::always_inline]] inline void request_executed(uint32_t qpn, uint32_t psn, uint8_t opcode) {
  ROCI_PROBE(3, request_executed, qpn, psn, opcode);
}

// Responder: an ACK, NAK or RNR NAK is staged for the port.
[[gnu::always_inline]] inline void ack_sent(uint32_t qpn, uint32_t psn, uint8_t syndrome) {
  ROCI_PROBE(3, ack_sent, qpn, psn, syndrome);
}

// Requester: an ACK, NAK or RNR NAK will be processed.
[[gnu::always_inline]] inline void ack_received(uint32_t qpn, uint32_t psn, uint32_t syndrome) {
  ROCI_PROBE(3, ack_received, qpn, psn, syndrome);
}

// Worker: a CNP to the queue pair's peer is staged for the port.
[[gnu::always_inline]] inline void cnp_sent(uint32_t qpn) { ROCI_PROBE(1, cnp_sent, qpn); }

// A connected queue pair has received a CNP.
[[gnu::always_inline]] inline void cnp_received(uint32_t qpn) { ROCI_PROBE(1, cnp_received, qpn); }

enum class Reason : uint32_t {
  kTimeout = 0,    // retransmission time-out
  kNak = 1,        // PSN sequence error NAK
  kTailProbe = 2,  // silence of the peer
  kRnr = 3,        // the delay of an RNR NAK has passed
  kGap = 4,        // response to a READ or an atomic missing
};

// Requester: packets from this PSN on will be sent again.
[[gnu::always_inline]] inline void retransmission_started(uint32_t qpn, uint32_t psn, Reason reason) {
  ROCI_PROBE(3, retransmission_started, qpn, psn, static_cast<uint32_t>(reason));
}

// Requester: a work request left the send queue, signaled or not.
[[gnu::always_inline]] inline void request_completed(uint32_t qpn, uint64_t wr_id, uint32_t status) {
  ROCI_PROBE(3, request_completed, qpn, wr_id, status);
}

// Requester and responder: a completion was written to the completion queue. `opcode` is valid with status 0 only.
[[gnu::always_inline]] inline void completion_written(uint32_t qpn, uint64_t wr_id, uint32_t status,
                                                      uint32_t opcode) {
  ROCI_PROBE(4, completion_written, qpn, wr_id, status, opcode);
}

// Application: a completion was copied to the caller.
[[gnu::always_inline]] inline void completion_polled(uint32_t qpn, uint64_t wr_id, uint32_t status,
                                                     uint32_t opcode) {
  ROCI_PROBE(4, completion_polled, qpn, wr_id, status, opcode);
}

}  // namespace roci::trace

#undef ROCI_PROBE
