// Finds out the sender's queue pair of a flow from what comes back (the third way of source_qpns.hpp): a packet names the
// queue pair it goes to, and an acknowledgement the sender's, with the PSN of a packet that has just gone by. PSNs begin at
// random, so only one of the flows between two hosts has such a PSN on its way.
//
//   watched flow A -> B, queue pair 17 of B:  PSN 1000, 1001, 1002 …
//   from B to A:  an ACK of PSN 1001 for queue pair 24  ->  a vote for 24
//
// Several votes for the same, with the flow moving on between them, and none for another, are believed. Flows of which
// the PSNs cannot be told apart get no vote: it is better not to know than to slow down somebody else.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "base/types.hpp"
#include "wire/roce_glance.hpp"

namespace roci {

// Owned by the switch's thread.
class AckCorrelator {
 public:
  static constexpr size_t kMost = 64;        // flows at a time
  static constexpr Nanos kPatience = 100ms;  // after which a flow is given up, to make room for others
  static constexpr int32_t kWindow = 8192;   // PSNs behind the newest that may still be acknowledged
  static constexpr int32_t kStep = 4;        // PSNs that a flow must have moved on between two votes
  static constexpr uint8_t kVotes = 4;

  // How many flows are watched.
  [[nodiscard]] uint32_t watching() const { return watched_; }
  // From now on, unless it is already. `responses`: its packets are READ responses. False when there is no room.
  bool watch(const RoceFlow& flow, bool responses, Nanos now);

  struct Found {
    RoceFlow flow;
    Qpn sender;
  };
  // A packet has come by. What has become clear with it is not watched any more.
  std::optional<Found> see(const RoceGlance& packet, Nanos now);

  // Packets that fitted several flows.
  [[nodiscard]] uint64_t ambiguous() const { return ambiguous_; }

 private:
  struct Watch {
    RoceFlow flow;
    bool active = false;
    bool responses = false;
    bool started = false;  // `newest` is known
    Psn newest;
    Psn voted_at;  // `newest` at the last vote
    Qpn candidate;
    uint8_t votes = 0;
    Nanos until{0};
  };

  static uint8_t pair_of(const RoceFlow& flow);
  [[nodiscard]] static bool fits(const Watch& watch, const RoceGlance& packet);
  bool vote(Watch& watch, Qpn candidate);
  void release(Watch& watch);

  std::array<Watch, kMost> watches_{};
  std::array<uint8_t, 256>
      pairs_{};  // watched flows by a hash of their two hosts: most packets are not of any
  uint32_t watched_ = 0;
  uint64_t ambiguous_ = 0;
};

}  // namespace roci
