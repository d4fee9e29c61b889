// Part of the time without an acknowledgment that counts towards the time-out of a requester. Time in which the peer's
// process did not run, or had not read the packet, does not count. Requires a port that reports the state of peer processes
// (port/peer_presence.hpp).
#pragma once

#include <algorithm>

#include "base/sequence.hpp"
#include "base/types.hpp"
#include "port/peer_presence.hpp"

namespace roci {

// Accounting of one requester's time-out.
class PeerSilence {
 public:
  // Called when a time-out of length `whole` for the packet `una` expires. Returns the rest of the time-out; 0: it has
  // expired. Before the first call for a packet only the time of the last loss is known, so the time-out may then take
  // up to twice as long.
  Nanos rest(Psn una, const PeerTime& peer, Nanos whole, Nanos now) {
    if (at_ == kNever || !(una_ == una)) {
      una_ = una;
      sent_by_ = kNever;
      counted_ = lost_none(peer, whole, now) ? whole : Nanos{0};
    } else {
      const Nanos lost = has_read_ ? peer.away - away_ : peer.lost - lost_;
      counted_ += (now - at_) - std::min(lost, now - at_);
    }
    at_ = now;
    lost_ = peer.lost;
    away_ = peer.away;
    if (sent_by_ == kNever) sent_by_ = now;
    has_read_ = peer.read_until >= sent_by_;
    if (counted_ < whole - whole / 16) return whole - counted_;
    counted_ = Nanos{0};
    sent_by_ = kNever;  // the packet is sent again
    has_read_ = false;
    return Nanos{0};
  }
  // Whether the peer could answer during all of the time-out.
  static bool lost_none(const PeerTime& peer, Nanos whole, Nanos now) { return peer.lost_at < now - whole; }

 private:
  Psn una_{};
  Nanos counted_{0};  // of the time up to `at_`
  Nanos at_ = kNever;
  Nanos lost_{0};  // PeerTime::lost at that time
  Nanos away_{0};  // PeerTime::away at that time
  // The packet and its last retransmission were sent before this time; kNever: not known.
  Nanos sent_by_ = kNever;
  // The peer has read the packet: unread frames of other queue pairs do not delay its response.
  bool has_read_ = false;
};

}  // namespace roci
