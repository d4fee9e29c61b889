// Computes for how long a process of the network could not have answered (peer_presence.hpp), from the engine time in its slot and
// from what it has read of a ring.
#pragma once

#include <cstdint>

#include "port/peer_presence.hpp"
#include "port/shm_segment.hpp"

namespace roci {

class ShmPeerClock {
 public:
  // What was written for the process: whether some of it is unread, and how far the process has read.
  struct Ring {
    bool unread;
    uint64_t freed;
  };
  // Reads the slot and adds what the process has lost since the last call.
  const PeerTime& read(const ShmSlot& slot, Ring ring, Nanos now);
  // Whether the process has unread frames or does not run at the moment. False for a process that waits for frames or is stopped.
  [[nodiscard]] bool is_busy(const ShmSlot& slot, bool unread, Nanos now) const;

 private:
  PeerTime time_;
  uint64_t incarnation_ = 0;
  int64_t behind_ = 0;  // by which the engine's time was behind the clock when last read
  Nanos read_at_{0};
  uint64_t freed_ = UINT64_MAX;  // how far the process had read then, and since when
  Nanos freed_at_{0};
  Nanos stopped_checked_{0};
  bool stopped_ = false;
};

}  // namespace roci
