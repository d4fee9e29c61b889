// A queue pair with what the engine needs to schedule it: its timer, its place in the worker's lists, its doorbell.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "base/timing_wheel.hpp"
#include "port/neighbours.hpp"
#include "transport/queue_pair_core.hpp"

namespace roci {

struct AttachedQueuePair : Timer {
  virtual ~AttachedQueuePair() = default;

  QueuePairCore& core;

  // Owned by the worker.
  bool ready = false;  // is in the list of those with something to do
  AttachedQueuePair* next_ready = nullptr;
  bool waits_for_neighbour = false;  // is in the list of those whose peer has no MAC yet
  NeighbourRef neighbour;            // the next hop towards the peer; empty until first needed
  uint32_t neighbour_version = 0;    // of the MAC that the headers hold

  // Doorbell, any thread: set while the queue pair waits in the worker's stack of rung ones.
  std::atomic<bool> rung{false};
  AttachedQueuePair* next_rung = nullptr;

 protected:
  explicit AttachedQueuePair(QueuePairCore& of) : core(of) {}
};

// A queue pair of the service that `config` names; both in one piece of memory. The caller has checked the type.
std::unique_ptr<AttachedQueuePair> make_queue_pair(const QueuePairConfig& config, CompletionRing& send_cq,
                                                   CompletionRing& recv_cq);

}  // namespace roci
