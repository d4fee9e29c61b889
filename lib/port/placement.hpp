// Placement by the sender: between processes of one machine an RDMA WRITE is copied into the responder's memory by the requester's
// thread, without the responder's process having to run, as on hardware. The responder grants it, after it has executed a WRITE
// with the same queue pair and key, and withdraws it before the memory or the queue pair changes.
#pragma once

#include <sys/uio.h>

#include <cstdint>
#include <span>

#include "base/sequence.hpp"
#include "base/types.hpp"
#include "wire/headers.hpp"

namespace roci {

// One thread at a time, the one that polls the port, or one that holds its worker's token.
class Placement {
 public:
  // What a request names: a queue pair of the responder and one of its keys.
  struct Target {
    Qpn qp{0};
    MemoryKey key{0};
  };
  // The region of the key: `length` bytes from `start` on, which are at `host` in the responder's process.
  struct Area {
    uint64_t start = 0;
    uint64_t length = 0;
    uint8_t* host = nullptr;
  };

  Placement() = default;
  Placement(const Placement&) = delete;
  Placement& operator=(const Placement&) = delete;
  virtual ~Placement() = default;

  // Responder: WRITEs of `peer` to `target` may be placed in the area from now on. Returns at once when that is so already.
  virtual void grant(const MacAddress& peer, const Target& target, const Area& area) = 0;
  // Responder: withdraws all grants. When it returns no peer writes to the areas any more; it waits for one that does, at most for
  // 100 ms: then the peer's process is stopped, and has written already.
  virtual void revoke() = 0;
  // Requester: copies the pieces, `length` bytes together, to `va` of the target. The last 8 bytes (the last one where the end is not
  // aligned) become visible after the others. False when the peer has not granted it or the copy has failed; a part may have been
  // copied then.
  virtual bool place(const MacAddress& peer, const Target& target, uint64_t va, std::span<const iovec> pieces,
                     uint64_t length) = 0;
};

}  // namespace roci
