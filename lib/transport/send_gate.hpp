// What holds back one direction of a queue pair beside its peer's own window: what a congestion control has decided about it.
// The engine puts decisions in and reads what has been sent; whoever sends asks for each packet and knows nothing else of
// congestion control. Without one a queue pair sends as the standard lets it.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/sequence.hpp"
#include "base/types.hpp"

namespace roci {

// Bytes are bytes on the line, with headers, preamble and gap.
class SendGate {
 public:
  static constexpr uint64_t kNoLimit = UINT64_MAX;
  static constexpr uint64_t kLeastRate = 100'000;  // bit/s

  // What has been decided, beside the pace.
  uint64_t window = kNoLimit;   // bytes in flight; a packet may always leave when none are
  Lsn not_ect_below{};          // packets of new bytes below leave as Not-ECT, but for the last of a row
  bool telemetry_next = false;  // the next packet begins telemetry; taken by whoever sends it
  bool telemetry_only_asked = false;  // no other one does; else the host's configuration says
  Nanos longest_wait = kNever;        // between two departures, whatever the pace
  uint32_t overhead = 0;              // of a packet on the line beside its payload
  Nanos early{0};  // that a packet may leave before its time, behind another; not where there is a gap

  // What has happened, since the queue pair was connected.
  uint64_t sent_bytes = 0;    // with those sent again
  uint64_t sent_packets = 0;  // likewise
  uint64_t new_packets = 0;   // sent for the first time
  uint64_t acked_packets = 0;
  Lsn sent_end{};  // of the next byte never sent
  Nanos last_sent{0};
  bool owes_repair = false;  // something is to be sent again, and nothing has left since
  uint32_t losses = 0;       // the peer said that packets are missing
  uint32_t timeouts = 0;     // nothing was heard

  // The pace from now on: bits a second, kNoLimit for none, and the least time between two departures.
  void set_pace(uint64_t rate, Nanos gap) {
    per_byte_ = rate == kNoLimit ? 0 : (uint64_t{8'000'000'000} << kPlaces) / std::max(rate, kLeastRate);
    gap_ = gap;
    // What has left at a slow pace must not hold up a faster one.
    const Nanos due =
        last_sent + std::max(gap_, Nanos{static_cast<int64_t>(last_bytes_ * per_byte_ >> kPlaces)});
    if (due < next_) {
      next_ = due;
      fraction_ = 0;
    }
    if (opens_at_ != kNever) opens_at_ = next_;
  }

  // Nothing leaves before that; until set_pace().
  void hold_until(Nanos then) {
    next_ = std::max(next_, then);
    running_ = false;
  }

  // Neither a window nor a pace: no algorithm runs.
  [[nodiscard]] bool is_unlimited() const { return window == kNoLimit && per_byte_ == 0 && gap_ == Nanos{0}; }

  // When the packet that was held back for the pace may leave; kNever when none was.
  [[nodiscard]] Nanos opens_at() const { return opens_at_; }
  // A turn begins, in which whoever is held back asks again. Who does not, because the queue pair has failed, has lost its
  // path or has nothing left, waits for no time.
  void begin_turn() { opens_at_ = kNever; }
  // Whether a packet may leave now, with so much sent and not acknowledged in front of it.
  [[nodiscard]] bool admits(Nanos now, uint64_t in_flight, uint32_t payload) {
    if (in_flight != 0 && in_flight + payload + overhead > window) {
      pause();
      return false;
    }
    const bool due = now >= next_ || (running_ && gap_ == Nanos{0} && now + early >= next_);
    opens_at_ = due ? kNever : next_;
    return due;
  }
  // A packet has left.
  void departed(Nanos now, uint32_t payload, bool is_new) {
    last_bytes_ = uint64_t{payload} + overhead;
    sent_bytes += last_bytes_;
    ++sent_packets;
    if (is_new) ++new_packets;
    last_sent = now;
    owes_repair = false;
    // Who comes late because others had their turn has not lost what was due; who had nothing to send has.
    if (!running_ || next_ < now - kMostLate) {
      next_ = now;
      fraction_ = 0;
    }
    running_ = true;
    const uint64_t span = last_bytes_ * per_byte_ + fraction_;
    fraction_ = span & ((uint64_t{1} << kPlaces) - 1);
    next_ += Nanos{static_cast<int64_t>(span >> kPlaces)};
    if (gap_ > Nanos{0}) next_ = std::max(next_, now + gap_);
    if (longest_wait != kNever) next_ = std::min(next_, now + longest_wait);
  }
  // Nothing may be sent, or there is nothing: the pace begins anew afterwards.
  void pause() {
    opens_at_ = kNever;
    running_ = false;
  }

 private:
  static constexpr unsigned kPlaces = 24;    // of the binary fraction of a nanosecond
  static constexpr Nanos kMostLate{20'000};  // that is made up for

  uint64_t per_byte_ = 0;  // ns a byte, in units of 2^-kPlaces; 0 without a rate
  Nanos gap_{0};
  Nanos next_{0};  // before which nothing leaves
  uint64_t fraction_ = 0;
  uint64_t last_bytes_ = 0;
  Nanos opens_at_ = kNever;
  bool running_ = false;  // departures follow each other at the pace
};

// Of a queue pair; the engine's own things lie behind them.
struct SendGates {
  // Who waits for the data of a READ gives up some time, and nobody knows when.
  static constexpr Nanos kResponsesWait{1'000'000};

  SendGates() { responses.longest_wait = kResponsesWait; }
  void begin_turn() {
    requests.begin_turn();
    responses.begin_turn();
  }
  SendGate requests;
  SendGate responses;        // to READs
  bool decides_ecn = false;  // packets are ECN-capable but for those that a gate excepts; else the path says
  uint32_t cnps = 0;         // that have come: nothing in them says which direction they are about
  // Answers to probes: how many, and the latest.
  uint32_t probes = 0;
  Nanos probe_rtt{0};
  Nanos probe_hold{0};  // within the peer's host, which is not in it
};

}  // namespace roci
