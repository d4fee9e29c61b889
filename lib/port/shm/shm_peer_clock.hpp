// Clock of a peer process: computes how long a process of the network could not respond (peer_presence.hpp), from the
// engine time in its slot and its read position in a ring.
#pragma once

#include <cstdint>

#include "port/peer_presence.hpp"
#include "port/shm/shm_segment.hpp"

namespace roci {

class ShmPeerClock {
 public:
  // A ring to the process: the position up to which it has been written, and up to which the process has read it.
  struct Ring {
    uint64_t written;
    uint64_t freed;
    [[nodiscard]] bool unread() const { return written != freed; }
  };
  // Reads the slot and the ring, and adds the time that the process has lost since the last call.
  const PeerTime& read(const ShmSlot& slot, Ring ring, Nanos now);
  // Whether the process has unread frames or does not run at the moment.
  // False for a process that waits for frames or is stopped.
  [[nodiscard]] bool is_busy(const ShmSlot& slot, bool unread, Nanos now) const;

 private:
  void note_read(Ring ring, Nanos now, bool new_owner);

  PeerTime time_;
  uint64_t incarnation_ = 0;
  int64_t behind_ = 0;  // lag of the engine time relative to the clock at the last read()
  Nanos read_at_{0};
  // Read position of the process at the last read(); freed_at_: when it changed.
  uint64_t freed_ = UINT64_MAX;
  Nanos freed_at_{0};
  // Written position at the time marked_at_. When the process has read up to it, all earlier frames have been read.
  uint64_t mark_ = 0;
  Nanos marked_at_{0};
  Nanos stopped_checked_{0};
  bool stopped_ = false;
};

}  // namespace roci
