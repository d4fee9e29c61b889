// Address handles of datagrams (IBTA 11.2.2), and the interface to their resolution: packet headers with the next hop's
// MAC.
#pragma once

#include <infiniband/verbs.h>
#include <rte_mbuf.h>

#include <atomic>
#include <cstdint>

#include "base/types.hpp"
#include "memory/memory_table.hpp"
#include "wire/roce/roce_writer.hpp"

namespace roci {

// The object behind the ibv_ah that work requests name. Immutable once the handle is created, except for `uses`.
struct AddressPath : ibv_ah {
  AddressPath(const RocePath& to, PdNumber domain, uint32_t most)
      : ibv_ah{}, path(to), pd(domain), max_payload(most) {}

  const RocePath path;  // without the destination MAC
  const PdNumber pd;
  const uint32_t max_payload;     // bytes of a datagram: the port's MTU as a path MTU
  bool may_tag = true;            // datagrams to it carry their queue pair's CN-TAG, if any
  std::atomic<uint32_t> uses{0};  // posted requests that name it; the handle outlives them
};

enum class PathState : uint8_t {
  kReady,
  kPending,      // address resolution in progress; the engine wakes the queue pair when it ends
  kUnreachable,  // address resolution failed, or no route
};

// Resolves address handles. Implemented by the engine, owned by the worker that calls it.
class PathSource {
 public:
  PathSource() = default;
  PathSource(const PathSource&) = delete;
  PathSource& operator=(const PathSource&) = delete;
  virtual ~PathSource() = default;

  struct Answer {
    PathState state = PathState::kUnreachable;
    RoceWriter* writer = nullptr;  // with kReady: valid until the next call
  };
  virtual Answer find(AddressPath& to, Nanos now) = 0;
  // Passes a copy of a frame, which is sent next, to this host's own members of the multicast group (IBTA 10.5.2.1).
  virtual void loop_back(const rte_mbuf& frame, const IpAddress& group) = 0;
  // Offers a copy of a raw frame with a multicast destination, which is sent next, to the flow rules of this host.
  virtual void loop_back_frame(const rte_mbuf& frame) = 0;
};

}  // namespace roci
