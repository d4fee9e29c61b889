// The XRC shared receive queues of a host by their number on the wire, and the domains they belong to (IBTA annex A14).
// Each message to an XRC target names one of its domain.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "base/id_table.hpp"
#include "transport/completion_ring.hpp"
#include "transport/shared_receive_ring.hpp"

namespace roci {

// An XRC domain. It is whom it is by its address: shared by the domain's maker and by everything in it.
struct XrcDomainCore {
  std::atomic<uint32_t> users{
      0};  // shared receive queues and targets, kept by those that make and destroy them
};

// What a target needs of a shared receive queue: its requests, and where they complete.
struct XrcReceiveQueue {
  Srqn number;
  std::shared_ptr<XrcDomainCore> domain;
  std::shared_ptr<SharedReceiveRing> requests;
  std::shared_ptr<CompletionRing> completions;
};

// Changed by the holder of all tokens, read by every worker.
struct XrcReceiveQueues {
  IdTable<const XrcReceiveQueue> by_number;
  // Of targets that no message has named a queue to yet, and of what only sends: nothing is completed here.
  CompletionRing nobodys{1};
};

}  // namespace roci
