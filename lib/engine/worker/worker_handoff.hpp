// One worker's end of the handoff between workers (handoff.hpp): received frames for other workers are collected in
// outboxes and passed in one batch per worker; frames of workers without a port queue are relayed.
#pragma once

#include <rte_mbuf.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/worker/handoff.hpp"
#include "telemetry/counters.hpp"

namespace roci {

struct AttachedQueuePair;

// Owned by the worker.
class WorkerHandoff {
 public:
  // Maximum number of received frames between two calls of deliver().
  static constexpr uint32_t kBurst = 32;

  // `index`: of the worker. `pool` provides copies of frames.
  WorkerHandoff(Handoff& rings, uint32_t index, rte_mempool* pool, Counters& counters);

  [[nodiscard]] bool has_other_workers() const { return outboxes_.size() > 1; }
  [[nodiscard]] uint32_t owner_of(Qpn number) const {
    return worker_of(number, static_cast<uint32_t>(outboxes_.size()));
  }
  [[nodiscard]] bool owns(Qpn number) const { return owner_of(number) == index_; }

  // Takes ownership of a received frame for another worker. At most one frame per worker for each frame of a burst, so
  // an outbox cannot overflow.
  void pass(uint32_t worker, rte_mbuf* frame) {
    Outbox& outbox = outboxes_[worker];
    outbox.frames[outbox.count++] = frame;
    pending_ = true;
  }
  void copy_to_all(const rte_mbuf* frame);
  // Copies the frame to the other workers that own one of the queue pairs.
  void copy_to_owners(const rte_mbuf* frame, std::span<AttachedQueuePair* const> members);
  // Passes the frames in the outboxes to their workers.
  void deliver() {
    if (pending_) deliver_outboxes();
  }

  // Received frames from each other worker.
  [[nodiscard]] std::span<FrameRing* const> inboxes() const { return inboxes_; }
  // The ring to the relay; null if the worker has a port queue.
  [[nodiscard]] FrameRing* outgoing() const { return outgoing_; }
  // Rings from the workers for which this worker is the relay.
  [[nodiscard]] std::span<FrameRing* const> relayed() const { return relayed_; }
  // Handoff::port_state() of this worker's port queue, or of its relay.
  [[nodiscard]] std::atomic<uint64_t>& port_state() const { return port_state_; }
  // Whether frames from other workers wait.
  [[nodiscard]] bool has_waiting() const;

 private:
  // An inbox with at least this number of frames accepts no copies, so that an ARP storm does not displace packets.
  static constexpr uint32_t kCopiesBelow = 64;

  // Frames for one other worker, passed at the end of the burst.
  struct Outbox {
    FrameRing* ring = nullptr;
    uint32_t count = 0;
    std::array<rte_mbuf*, kBurst> frames{};
  };

  void copy_to(uint32_t worker, const rte_mbuf* frame);
  void deliver_outboxes();

  const uint32_t index_;
  bool pending_ = false;  // an outbox has frames
  rte_mempool* const pool_;
  Counters& counters_;
  FrameRing* outgoing_ = nullptr;
  std::atomic<uint64_t>& port_state_;
  std::vector<FrameRing*> inboxes_;
  std::vector<FrameRing*> relayed_;
  std::vector<Outbox> outboxes_;  // to each worker; the own one is unused
};

}  // namespace roci
