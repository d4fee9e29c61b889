// ACK correlator: learns the source queue pair of a flow from packets of the reverse direction (third source in
// source_qpns.hpp). A packet names only its destination queue pair. An acknowledgment therefore names the sender's
// queue pair, together with a PSN that the flow has just sent. First PSNs are random, so normally only one flow between
// two hosts has this PSN in flight.
//
//   watched flow A -> B, queue pair 17 of B:  PSN 1000, 1001, 1002 …
//   from B to A:  an ACK of PSN 1001 for queue pair 24  ->  a vote for 24
//
// A queue pair is accepted after kVotes consecutive votes for it, with progress of the flow between the votes. A packet
// that fits several watched flows is not a vote: no CNP is better than a CNP to the wrong sender.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "base/types.hpp"
#include "wire/roce/roce_peek.hpp"

namespace roci {

// Owned by one switch worker.
class AckCorrelator {
 public:
  static constexpr size_t kMax = 64;        // flows watched at a time
  static constexpr Nanos kTimeout = 100ms;  // time after which a flow is no longer watched
  static constexpr int32_t kWindow = 8192;  // PSNs before the newest that may still be acknowledged
  static constexpr int32_t kStep = 4;       // PSNs by which a flow must progress between two votes
  static constexpr uint8_t kVotes = 4;

  // Number of watched flows.
  [[nodiscard]] uint32_t watching() const { return watched_; }
  // Starts to watch the flow, unless it is watched already. `responses`: its packets are READ responses. Returns false
  // if kMax flows are watched.
  bool watch(const RoceFlow& flow, bool responses, Nanos now);

  struct Found {
    RoceFlow flow;
    Qpn sender;
  };
  // Processes a packet that passes the switch. Returns a flow whose sender is now known; it is no longer watched.
  std::optional<Found> observe(const RocePeek& packet, Nanos now);

  // Packets that fit several watched flows.
  [[nodiscard]] uint64_t ambiguous() const { return ambiguous_; }

 private:
  struct Watch {
    RoceFlow flow;
    bool active = false;
    bool responses = false;
    bool started = false;  // `newest` is valid
    Psn newest;
    Psn voted_at;  // `newest` at the last vote
    Qpn candidate;
    uint8_t votes = 0;
    Nanos until{0};
  };

  static uint8_t pair_of(const RoceFlow& flow);
  [[nodiscard]] static bool fits(const Watch& watch, const RocePeek& packet);
  bool vote(Watch& watch, Qpn candidate);
  void release(Watch& watch);

  std::array<Watch, kMax> watches_{};
  // Number of watched flows by a hash of their two hosts, to skip the packets of other hosts.
  std::array<uint8_t, 256> pairs_{};
  uint32_t watched_ = 0;
  uint64_t ambiguous_ = 0;
};

}  // namespace roci
