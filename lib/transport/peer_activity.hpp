// Table of the time at which each peer last acknowledged a request of any queue pair of a worker. A time-out of a queue
// pair whose peer acknowledges others means that its requests are queued at the peer.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/types.hpp"
#include "wire/headers/address.hpp"

namespace roci {

// Owned by one worker. Peers share entries by a hash of the address.
class PeerActivity {
 public:
  void note(const IpAddress& peer, Nanos now) { last_[index(peer)] = now; }
  // Whether the peer, or another peer with the same entry, has sent an acknowledgment after `then`.
  [[nodiscard]] bool acknowledged_since(const IpAddress& peer, Nanos then) const {
    return last_[index(peer)] > then;
  }

 private:
  static constexpr size_t kEntries = 64;
  static size_t index(const IpAddress& peer) {
    uint32_t end = 0;
    std::memcpy(&end, peer.bytes.data() + peer.bytes.size() - sizeof end, sizeof end);
    return (end * 0x9e3779b1U) >> 26;
  }

  std::array<Nanos, kEntries> last_{};
};

}  // namespace roci
