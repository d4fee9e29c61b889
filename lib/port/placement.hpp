// Interface for placement by the sender: between processes of one machine, the requester's thread copies the data of an
// RDMA WRITE into the responder's memory. As with RDMA hardware, the responder's process need not run. The responder
// grants placement after it has executed a WRITE with the same queue pair and key, and revokes the grant before the
// memory or the queue pair changes.
#pragma once

#include <sys/uio.h>

#include <cstdint>
#include <span>

#include "base/sequence.hpp"
#include "base/types.hpp"
#include "wire/headers/headers.hpp"

namespace roci {

// One thread at a time: the thread that polls the port, or one that holds its worker's token.
class Placement {
 public:
  // The destination of a request: a queue pair of the responder and one of its keys.
  struct Target {
    Qpn qp{0};
    MemoryKey key{0};
  };
  // The memory region of the key: `length` bytes from address `start`, mapped at `host` in the responder's process.
  struct Area {
    uint64_t start = 0;
    uint64_t length = 0;
    uint8_t* host = nullptr;
  };

  Placement() = default;
  Placement(const Placement&) = delete;
  Placement& operator=(const Placement&) = delete;
  virtual ~Placement() = default;

  // Responder: permits `peer` to place WRITEs to `target` in the area. Returns at once if the grant already exists.
  virtual void grant(const MacAddress& peer, const Target& target, const Area& area) = 0;
  // Responder: revokes all grants, and waits at most 100 ms for copies in progress. No peer writes to the areas after
  // it has returned, with one exception: a requester that was stopped (SIGSTOP) during place() may write up to 1 MiB
  // when it continues.
  virtual void revoke() = 0;
  // Requester: copies the pieces, `length` bytes in total, to `va` of the target. The last 8 bytes (the last byte, if
  // the end is not aligned) become visible after the others. Returns false if the peer has not granted placement or the
  // copy has failed; a part may then have been copied.
  virtual bool place(const MacAddress& peer, const Target& target, uint64_t va, std::span<const iovec> pieces,
                     uint64_t length) = 0;
};

}  // namespace roci
