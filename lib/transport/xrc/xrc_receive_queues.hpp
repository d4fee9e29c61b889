// Table of a host's XRC shared receive queues by SRQ number, with their XRC domains (IBTA annex A14). Each message to
// an XRC target contains the number of a queue in its domain.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "base/containers/id_table.hpp"
#include "transport/queues/completion_ring.hpp"
#include "transport/queues/shared_receive_ring.hpp"

namespace roci {

// XRC domain. Identified by its address, and shared by its creator and all objects in it.
struct XrcDomainCore {
  // Number of shared receive queues and targets, counted by the code that creates and destroys them.
  std::atomic<uint32_t> users{0};
};

// The parts of a shared receive queue that a target uses: requests and completion queue.
struct XrcReceiveQueue {
  Srqn number;
  std::shared_ptr<XrcDomainCore> domain;
  std::shared_ptr<SharedReceiveRing> requests;
  std::shared_ptr<CompletionRing> completions;
};

// Modified by the holder of all worker tokens, read by all workers.
struct XrcReceiveQueues {
  IdTable<const XrcReceiveQueue> by_number;
  // Unused completion queue of initiators, and of targets without a selected queue.
  CompletionRing unowned{1};
};

}  // namespace roci
