// Gate of congestion control for one direction of a queue pair. It limits transmission by a window and a pace, in
// addition to the peer's window. The engine writes decisions and reads counts of sent packets. Requester and responder
// query the gate for each packet and do not depend on congestion control otherwise. Without congestion control a queue
// pair has no gate.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/sequence.hpp"
#include "base/types.hpp"

namespace roci {

// Delays packets by window and pace. Bytes are bytes on the line, with headers, preamble and inter-frame gap.
class SendGate {
 public:
  static constexpr uint64_t kNoLimit = UINT64_MAX;
  static constexpr uint64_t kMinRate = 100'000;  // bit/s

  // Decisions, except the pace.
  uint64_t window = kNoLimit;   // bytes in flight; a packet may always be sent when none are
  Lsn not_ect_below{};          // new packets below this LSN are Not-ECT (exception: sends_as_not_ect())
  bool telemetry_next = false;  // the next packet starts telemetry; reset by its sender
  bool telemetry_only_requested = false;  // no other packet does; false: as the host is configured
  Nanos longest_wait = kNever;            // maximum time between two departures, regardless of the pace
  uint32_t overhead = 0;                  // bytes of a packet on the line in addition to its payload
  // How long before its due time a packet may be sent after another one. Unused with a minimum gap.
  Nanos early{0};

  // Counts and state since the queue pair was connected.
  uint64_t sent_bytes = 0;    // including retransmissions
  uint64_t sent_packets = 0;  // including retransmissions
  uint64_t new_packets = 0;   // first transmissions
  uint64_t acked_packets = 0;
  Lsn sent_end{};  // LSN of the next byte that was never sent
  Nanos last_sent{0};
  bool owes_repair = false;  // a retransmission is due, and no packet has been sent since
  uint32_t losses = 0;       // the peer reported missing packets
  uint32_t timeouts = 0;     // time-outs without an acknowledgment

  // Sets the pace: a rate in bit/s, kNoLimit for none, and the minimum time between two departures. A faster or slower
  // pace also applies to the packet that waits.
  void set_pace(uint64_t rate, Nanos gap) {
    per_byte_ = rate == kNoLimit ? 0 : (uint64_t{8'000'000'000} << kFractionBits) / std::max(rate, kMinRate);
    gap_ = gap;
    schedule_next();
    if (opens_at_ != kNever) opens_at_ = next_;
  }

  // Holds all packets until `then`, or until set_pace().
  void hold_until(Nanos then) {
    next_ = std::max(next_, then);
    running_ = false;
  }

  // Neither window nor pace: no algorithm runs.
  [[nodiscard]] bool is_unlimited() const { return window == kNoLimit && per_byte_ == 0 && gap_ == Nanos{0}; }

  // When the packet that the pace holds back may be sent; kNever: none is held back.
  [[nodiscard]] Nanos opens_at() const { return opens_at_; }
  // Starts a turn of the queue pair, in which held-back packets query the gate again. If none does (failed queue pair,
  // lost path, nothing to send), no timer remains set.
  void begin_turn() { opens_at_ = kNever; }
  // Whether a packet may be sent now. `in_flight`: unacknowledged bytes before it.
  [[nodiscard]] bool admits(Nanos now, uint64_t in_flight, uint32_t payload) {
    if (in_flight != 0 && in_flight + payload + overhead > window) {
      pause();
      return false;
    }
    const bool due = now >= next_ || (running_ && gap_ == Nanos{0} && now + early >= next_);
    opens_at_ = due ? kNever : next_;
    return due;
  }
  // Records the transmission of a packet.
  void departed(Nanos now, uint32_t payload, bool is_new) {
    last_bytes_ = uint64_t{payload} + overhead;
    sent_bytes += last_bytes_;
    ++sent_packets;
    if (is_new) ++new_packets;
    last_sent = now;
    owes_repair = false;
    // A sender that is late because other queue pairs were served keeps its due time. A sender that had nothing to send
    // does not.
    const bool continues = running_ && next_ >= now - kMaxLate;
    last_due_ = continues ? next_ : now;
    last_fraction_ = continues ? fraction_ : 0;
    running_ = true;
    schedule_next();
  }
  // Nothing to send, or not permitted to: the pace starts again afterwards.
  void pause() {
    opens_at_ = kNever;
    running_ = false;
  }

 private:
  static constexpr unsigned kFractionBits = 24;  // binary digits of a fraction of a nanosecond
  static constexpr Nanos kMaxLate{20'000};       // delay that is compensated

  void schedule_next() {
    const uint64_t span = last_bytes_ * per_byte_ + last_fraction_;
    fraction_ = span & ((uint64_t{1} << kFractionBits) - 1);
    next_ = last_due_ + Nanos{static_cast<int64_t>(span >> kFractionBits)};
    if (gap_ > Nanos{0} && sent_packets != 0) next_ = std::max(next_, last_sent + gap_);
    if (longest_wait != kNever) next_ = std::min(next_, last_sent + longest_wait);
  }

  uint64_t per_byte_ = 0;  // ns per byte, in units of 2^-kFractionBits; 0: no rate
  Nanos gap_{0};
  Nanos next_{0};  // due time of the next packet
  uint64_t fraction_ = 0;
  Nanos last_due_{0};  // due time of the last packet, with its fraction
  uint64_t last_fraction_ = 0;
  uint64_t last_bytes_ = 0;
  Nanos opens_at_ = kNever;
  bool running_ = false;  // departures follow each other at the pace
};

// Gates of both directions of a queue pair. Base of the engine's ControlledQueuePair.
struct SendGates {
  // Bounds the delay of READ responses: the requester's time-out is not known to the responder.
  static constexpr Nanos kResponsesWait{1'000'000};

  SendGates() { responses.longest_wait = kResponsesWait; }
  void begin_turn() {
    requests.begin_turn();
    responses.begin_turn();
  }
  SendGate requests;
  SendGate responses;        // READ responses
  int dscp = -1;             // of all packets; -1: that of the path
  bool decides_ecn = false;  // packets are ECN-capable unless a gate excludes them; false: see the path
  uint32_t cnps = 0;         // received; a CNP does not identify the direction
  // Responses to probes: their number, and the latest.
  uint32_t probes = 0;
  Nanos probe_rtt{0};
  Nanos probe_hold{0};  // time in the peer's host, not included in probe_rtt
};

}  // namespace roci
