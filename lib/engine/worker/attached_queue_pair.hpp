// A queue pair with the engine's scheduling state: timer, links in the worker's lists, doorbell.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "base/containers/sparse_arena.hpp"
#include "base/time/timing_wheel.hpp"
#include "engine/management/peers.hpp"
#include "port/neighbors/neighbors.hpp"
#include "transport/queue_pair/queue_pair_core.hpp"

namespace roci {

class Worker;
struct XrcDomainCore;
struct XrcReceiveQueues;

// Two cache lines (64 bytes): scheduling state, and the state of the path to the peer.
// The queue pair follows them in memory (queue_pair_core.hpp).
struct AttachedQueuePair : Timer {
  static constexpr uint32_t kNotWaiting = UINT32_MAX;

  virtual ~AttachedQueuePair() = default;
  static void* operator new(size_t bytes, SparseArena& arena) noexcept { return arena.take(bytes); }
  static void operator delete(void* qp, size_t bytes) noexcept { SparseArena::give_back(qp, bytes); }

  // Prefetches all lines that serving the queue pair accesses. With many queue pairs each is cold, and consecutive
  // cache misses would take longer than the work.
  void prefetch() const {
    const auto* bytes = reinterpret_cast<const char*>(this);
    for (size_t at = 0; at < kPrefetched; at += 64) __builtin_prefetch(bytes + at);
  }

  // Line 0, owned by the worker: links in its lists.
  bool ready = false;                   // in the list of queue pairs with work
  bool session_due : 1 = false;         // create the session with the peer before the next packet
  bool waits_to_send : 1 = false;       // counted in TransmitScheduler::waiting_to_send()
  bool acknowledges_first : 1 = false;  // in the list of TransmitScheduler::acknowledge_first()
  uint32_t waiting_at = kNotWaiting;    // index among the queue pairs that wait for the peer's MAC address
  AttachedQueuePair* next_ready = nullptr;
  AttachedQueuePair* previous_ready = nullptr;
  // The worker to which the queue pair is attached. Set once, before any other thread can access the queue pair.
  Worker* worker = nullptr;

  // Line 1.
  QueuePairCore& core;
  NeighborRef neighbor;           // next hop to the peer; empty until first needed
  uint16_t neighbor_version = 0;  // of the MAC address in the headers; low half of Neighbor::version
  uint16_t peer_process = 0;      // PeerPresence::process_of() this MAC address
  // The peer's known extensions; null if extensions are disabled or the service supports none.
  uint32_t peer_version = 0;  // version of `peer` from which the session was created
  std::shared_ptr<const PeerRecord> peer;
  uint32_t flow_seen = 0;  // state of FlowCount
  uint8_t paused = 0;      // priority + 1 while `ready` is set and the priority is paused; else 0

  // Doorbell, any thread: set while the queue pair is in the worker's stack of rung queue pairs.
  std::atomic<bool> rung{false};
  // Owned by the worker: number in CongestionFlows, to which congestion notifications refer; 0: none.
  uint16_t congestion_flow = 0;
  AttachedQueuePair* next_rung = nullptr;

 private:
  static constexpr size_t kPrefetched = 768;

 protected:
  explicit AttachedQueuePair(QueuePairCore& of) : core(of) {}
};

// Creates a queue pair of the service in `config`, in one block of `arena`, which must outlive it. The caller has
// validated the type. Null if the arena has no memory for it and its queues.
std::unique_ptr<AttachedQueuePair> make_queue_pair(SparseArena& arena, const QueuePairConfig& config,
                                                   CompletionRing& send_cq, CompletionRing& recv_cq);
// The same for an XRC target, which has a domain and all shared receive queues instead of completion queues.
std::unique_ptr<AttachedQueuePair> make_xrc_target(SparseArena& arena, const QueuePairConfig& config,
                                                   XrcReceiveQueues& queues, const XrcDomainCore& domain);

}  // namespace roci
