// A queue pair with what the engine needs to schedule it: its timer, its place in the worker's lists, its doorbell.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "base/sparse_arena.hpp"
#include "base/timing_wheel.hpp"
#include "engine/peers.hpp"
#include "port/neighbours.hpp"
#include "transport/queue_pair_core.hpp"

namespace roci {

class Worker;
struct XrcDomainCore;
struct XrcReceiveQueues;

// Two cache lines (64 bytes): what scheduling it touches, and what keeps the way to its peer. The queue pair lies behind
// them (queue_pair_core.hpp).
struct AttachedQueuePair : Timer {
  static constexpr uint32_t kNotWaiting = UINT32_MAX;

  virtual ~AttachedQueuePair() = default;
  static void* operator new(size_t bytes, SparseArena& arena) noexcept { return arena.take(bytes); }
  static void operator delete(void* qp, size_t bytes) noexcept { SparseArena::give_back(qp, bytes); }

  // Fetches what serving it will touch, all at once: with many queue pairs in turn each is cold, and one miss after the
  // other would take longer than the work.
  void prefetch() const {
    const auto* bytes = reinterpret_cast<const char*>(this);
    for (size_t at = 0; at < kPrefetched; at += 64) __builtin_prefetch(bytes + at);
  }

  // Owned by the worker, line 0: the lists it is in.
  bool ready = false;                 // is in the list of those with something to do
  bool session_due : 1 = false;       // with its peer, before the next packet
  bool waits_to_send : 1 = false;     // is counted in Worker::waiting_to_send()
  uint32_t waiting_at = kNotWaiting;  // its place among those whose peer has no MAC yet
  AttachedQueuePair* next_ready = nullptr;
  AttachedQueuePair* previous_ready = nullptr;
  // The one it is attached to; set once, before anybody else sees the queue pair.
  Worker* worker = nullptr;

  // Line 1.
  QueuePairCore& core;
  NeighbourRef neighbour;          // the next hop towards the peer; empty until first needed
  uint16_t neighbour_version = 0;  // of the MAC that the headers hold; the low half of Neighbour::version
  uint16_t peer_process = 0;       // PeerPresence::process_of() this MAC
  // What the peer is known to understand; null when extensions are off or the service has none.
  uint32_t peer_version = 0;  // of it that the session was made from
  std::shared_ptr<const PeerRecord> peer;
  uint32_t flow_seen = 0;  // FlowCount's
  uint8_t parked = 0;      // `ready`, but its priority, one less than this, is paused; 0: it is not

  // Doorbell, any thread: set while the queue pair waits in the worker's stack of rung ones.
  std::atomic<bool> rung{false};
  // The worker's again: its number in CongestionFlows, by which it is told of congestion; 0: none.
  uint16_t congestion_flow = 0;
  AttachedQueuePair* next_rung = nullptr;

 private:
  static constexpr size_t kPrefetched = 768;

 protected:
  explicit AttachedQueuePair(QueuePairCore& of) : core(of) {}
};

// A queue pair of the service that `config` names; both in one piece of memory of `arena`, which outlives it. The caller has
// checked the type. Null when the arena has no memory for it and its queues.
std::unique_ptr<AttachedQueuePair> make_queue_pair(SparseArena& arena, const QueuePairConfig& config,
                                                   CompletionRing& send_cq, CompletionRing& recv_cq);
// The same for an XRC target, which has a domain and all shared receive queues there are instead of completion queues.
std::unique_ptr<AttachedQueuePair> make_xrc_target(SparseArena& arena, const QueuePairConfig& config,
                                                   XrcReceiveQueues& queues, const XrcDomainCore& domain);

}  // namespace roci
