// How much of the time without an acknowledgment counts towards the time-out of a requester whose port knows the peer's process
// (port/peer_presence.hpp): time in which the peer could not answer does not.
#pragma once

#include <algorithm>

#include "base/sequence.hpp"
#include "base/types.hpp"
#include "port/peer_presence.hpp"

namespace roci {

class PeerSilence {
 public:
  // At an expired time-out of length `whole` for the packet `una`. Returns what is left of the time-out; 0: it has expired. Of the
  // time before the first call for a packet only the last loss is known, so the time-out may then take up to twice as long.
  Nanos rest(Psn una, const PeerTime& peer, Nanos whole, Nanos now) {
    if (at_ == kNever || !(una_ == una)) {
      una_ = una;
      counted_ = lost_none(peer, whole, now) ? whole : Nanos{0};
    } else {
      counted_ += (now - at_) - std::min(peer.lost - lost_, now - at_);
    }
    at_ = now;
    lost_ = peer.lost;
    if (counted_ < whole - whole / 16) return whole - counted_;
    counted_ = Nanos{0};
    return Nanos{0};
  }
  // Whether the peer could answer in all of the time-out.
  static bool lost_none(const PeerTime& peer, Nanos whole, Nanos now) { return peer.lost_at < now - whole; }

 private:
  Psn una_{};
  Nanos counted_{0};  // of the time up to `at_`
  Nanos at_ = kNever;
  Nanos lost_{0};  // PeerTime::lost at that time
};

}  // namespace roci
