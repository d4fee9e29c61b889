// When each peer has last acknowledged a request, of any queue pair of a worker. A queue pair whose peer answers others waits in a
// queue of the peer.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/types.hpp"
#include "wire/address.hpp"

namespace roci {

class HeardPeers {
 public:
  void note(const IpAddress& peer, Nanos now) { last_[index(peer)] = now; }
  // Whether the peer, or another one with the same entry, has been heard since then.
  [[nodiscard]] bool since(const IpAddress& peer, Nanos then) const { return last_[index(peer)] > then; }

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
