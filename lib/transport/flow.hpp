// The two ends of one direction of a queue pair: requests are a direction, READ responses another, each with a byte
// sequence (LSN) of its own (draft-dai-tsvwg-pfc-free-congestion-control §3.1). What is kept here is what a congestion control needs to
// know, whatever told it: standard acknowledgements, or extension blocks.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/sequence.hpp"
#include "base/types.hpp"

namespace roci {

// The sending end. Counts are since the direction began.
struct SendFlow {
  Lsn next{};                             // of the next new byte
  Lsn acknowledged{};                     // all bytes below have arrived
  uint64_t packets_sent = 0;              // with those sent again
  uint64_t packets_acked = 0;             // said to have arrived
  uint64_t packets_marked = 0;            // of those, said to have arrived with CE
  Nanos rtt = kNever;                     // the latest sample; kNever before the first
  Nanos least_rtt = kNever;               // of all samples
  uint32_t rtt_hold = 0;                  // ns of that sample within the peer's host, which are not in `rtt`
  uint32_t rtt_samples = 0;               // modulo 2^32
  uint32_t receiver_window = UINT32_MAX;  // bytes in flight that the receiver allows; it has not said so: all
  uint32_t flows_at_receiver = 0;         // that share its link, as it says; 0 when it has not said so

  void note_rtt(Nanos sample, Nanos hold = Nanos{0}) {
    rtt = sample;
    if (sample < least_rtt) least_rtt = sample;
    rtt_hold = static_cast<uint32_t>(std::min<int64_t>(hold.count(), UINT32_MAX));
    ++rtt_samples;
  }
};

// The receiving end. The packet counts wrap at 2^32, as on the wire.
struct ReceiveFlow {
  Lsn received{};        // all bytes below have arrived in order
  Psn next_psn{};        // of the packet that is expected next
  uint32_t packets = 0;  // that arrived, in order or not
  uint32_t marked = 0;   // of those, with CE

  void count(bool ce) {
    ++packets;
    marked += ce ? 1 : 0;
  }
};

}  // namespace roci
