// State of a flow, one direction of a queue pair, at its sender and its receiver. Requests are one direction, READ
// responses the other, each with its own byte sequence number (LSN, draft-dai-tsvwg-pfc-free-congestion-control §3.1).
// The state is the input of congestion control, with standard acknowledgments as well as with extension blocks.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/sequence.hpp"
#include "base/types.hpp"

namespace roci {

// Sender state. Counts start when the queue pair is connected.
struct SendFlow {
  Lsn next{};                     // LSN of the next new byte
  Lsn acknowledged{};             // all bytes below have arrived
  uint64_t packets_sent = 0;      // including retransmissions
  uint64_t packets_acked = 0;     // reported as arrived
  uint64_t packets_marked = 0;    // of those, reported as arrived with CE
  Nanos rtt = kNever;             // the latest sample; kNever before the first
  Nanos least_rtt = kNever;       // minimum of all samples
  uint32_t rtt_hold = 0;          // ns of that sample spent in the peer's host, not included in `rtt`
  uint16_t rtt_samples = 0;       // modulo 2^16
  uint16_t receiver_windows = 0;  // accepted values of receiver_window, also unchanged ones; modulo 2^16
  uint32_t receiver_window = UINT32_MAX;  // bytes in flight that the receiver permits; initially no limit
  uint32_t flows_at_receiver = 0;  // number that shares the receiver's link, as reported; 0: not reported

  void note_rtt(Nanos sample, Nanos hold = Nanos{0}) {
    rtt = sample;
    if (sample < least_rtt) least_rtt = sample;
    rtt_hold = static_cast<uint32_t>(std::min<int64_t>(hold.count(), UINT32_MAX));
    ++rtt_samples;
  }
};

// Receiver state. The packet counts wrap at 2^32, as on the wire.
struct ReceiveFlow {
  Lsn received{};        // all bytes below have arrived in order
  Psn next_psn{};        // expected PSN
  uint32_t packets = 0;  // received, in order or not
  uint32_t marked = 0;   // of those, with CE

  void count(bool ce) {
    ++packets;
    marked += ce ? 1 : 0;
  }
};

}  // namespace roci
