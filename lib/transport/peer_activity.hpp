// What the queue pairs of a worker know about each peer: when it last acknowledged a request, and how long it has kept a
// queue pair waiting while it acknowledged others. A time-out of a queue pair whose peer acknowledges others means that
// its requests are queued at the peer.
#pragma once

#include <algorithm>
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
  // The peer has acknowledged a request.
  void note(const IpAddress& peer, Nanos now) { of(peer).acknowledged_at = now; }
  // Whether the peer, or another peer with the same entry, has sent an acknowledgment after `then`.
  [[nodiscard]] bool acknowledged_since(const IpAddress& peer, Nanos then) const {
    return of(peer).acknowledged_at > then;
  }

  // The peer has acknowledged a request after a silence of this length, which included time-outs. A peer that serves
  // its queue pairs in turns repeats such silences (Linux soft-RoCE: up to 1,024 packets of each queue pair).
  void note_silence(const IpAddress& peer, Nanos silence, Nanos now) {
    Entry& entry = of(peer);
    if (silence < entry.longest_silence && now - entry.silence_at < kMemory) return;
    entry.longest_silence = std::min(silence, kLongestSilence);
    entry.silence_at = now;
  }
  // The longest silence of the last minute, at most kLongestSilence; 0: none.
  [[nodiscard]] Nanos longest_silence(const IpAddress& peer, Nanos now) const {
    const Entry& entry = of(peer);
    return now - entry.silence_at < kMemory ? entry.longest_silence : Nanos{0};
  }
  static constexpr Nanos kLongestSilence = 4s;

 private:
  static constexpr size_t kEntries = 64;
  static constexpr Nanos kMemory = 60s;
  struct Entry {
    Nanos acknowledged_at{0};
    Nanos longest_silence{0};
    Nanos silence_at{0};
  };
  static size_t index(const IpAddress& peer) {
    uint32_t end = 0;
    std::memcpy(&end, peer.bytes.data() + peer.bytes.size() - sizeof end, sizeof end);
    return (end * 0x9e3779b1U) >> 26;
  }
  Entry& of(const IpAddress& peer) { return entries_[index(peer)]; }
  [[nodiscard]] const Entry& of(const IpAddress& peer) const { return entries_[index(peer)]; }

  std::array<Entry, kEntries> entries_{};
};

}  // namespace roci
