// Where datagrams go (IBTA 11.2.2, address handles), and what the engine makes of it: headers with the next hop's MAC.
#pragma once

#include <infiniband/verbs.h>
#include <rte_mbuf.h>

#include <atomic>
#include <cstdint>

#include "base/types.hpp"
#include "memory/memory_table.hpp"
#include "wire/roce_writer.hpp"

namespace roci {

// Behind the ibv_ah that work requests name. Does not change after it was made, but for the count of its users.
struct AddressPath : ibv_ah {
  AddressPath(const RocePath& to, PdNumber domain, uint32_t most)
      : ibv_ah{}, path(to), pd(domain), max_payload(most) {}

  const RocePath path;  // without the destination MAC
  const PdNumber pd;
  const uint32_t max_payload;     // bytes of a datagram: the port's MTU as a path MTU
  bool may_tag = true;            // datagrams there carry the CN-TAG of their queue pair, if it has one
  std::atomic<uint32_t> uses{0};  // posted requests that name it; it outlives them
};

enum class PathState : uint8_t {
  kReady,
  kPending,      // nobody has said yet who has the next hop's address; the engine wakes the queue pair then
  kUnreachable,  // nobody answered for it, or no network leads there
};

// Lent by the engine. Owned by the worker that asks.
class PathSource {
 public:
  PathSource() = default;
  PathSource(const PathSource&) = delete;
  PathSource& operator=(const PathSource&) = delete;
  virtual ~PathSource() = default;

  struct Answer {
    PathState state = PathState::kUnreachable;
    RoceWriter* writer = nullptr;  // with kReady, until the next call
  };
  virtual Answer find(AddressPath& to, Nanos now) = 0;
  // A frame to a group is about to be sent: this host's own members get a copy (IBTA 10.5.2.1).
  virtual void loop_back(const rte_mbuf& frame, const IpAddress& group) = 0;
};

}  // namespace roci
