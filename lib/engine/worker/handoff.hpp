// Handover of frames between the workers of a host, through bounded rings with one producer and one consumer thread:
//
//   inbox(from, to)   received packets whose queue pair belongs to `to`; dropped if the ring is full, as on a full port
//   outgoing(from)    frames of a worker without a port queue of its own; its relay sends them; while the ring is
//                     full, the frames wait
//
// Alternatively, workers could share a port queue with a lock per burst. With a relay, each port queue is used by one
// thread, as ethdev requires, no worker spins while another sends, and runs in virtual time are deterministic.
#pragma once

#include <rte_mbuf.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/containers/spsc_ring.hpp"
#include "base/types.hpp"

namespace roci {

using FrameRing = SpscRing<rte_mbuf*>;

// The worker that owns a queue pair. The special queue pairs 0 and 1 belong to the first worker (IBTA 3.9.1).
constexpr uint32_t worker_of(Qpn number, uint32_t workers) {
  return workers == 1 || number.value() <= 1 ? 0 : number.value() % workers;
}

class Handoff {
 public:
  // Ring size. A worker takes 32 frames of each of its rings per round; the rest
  // buffers frames for a worker whose thread is not scheduled.
  static constexpr uint32_t kRing = 512;

  // `queues`: of the port. If there are fewer queues than workers, only the first `queues` workers have one.
  Handoff(uint32_t workers, uint32_t queues);
  ~Handoff();  // frees the frames in the rings
  Handoff(const Handoff&) = delete;
  Handoff& operator=(const Handoff&) = delete;

  [[nodiscard]] uint32_t workers() const { return workers_; }
  [[nodiscard]] uint32_t queues() const { return queues_; }
  // `from` and `to` must differ.
  [[nodiscard]] FrameRing& inbox(uint32_t from, uint32_t to) { return *inboxes_[from * workers_ + to]; }
  [[nodiscard]] bool needs_relay(uint32_t worker) const { return worker >= queues_; }
  // `from` must need a relay.
  [[nodiscard]] FrameRing& outgoing(uint32_t from) { return *outgoing_[from]; }
  [[nodiscard]] uint32_t relay_of(uint32_t worker) const { return worker % queues_; }
  // State of a relay's port queue, written by the relay and read by the workers that it relays for. Bit 0: frames wait
  // for the queue. The other bits: number of frames that it has accepted.
  [[nodiscard]] std::atomic<uint64_t>& port_state(uint32_t relay) { return port_states_[relay]; }

 private:
  uint32_t workers_, queues_;
  std::vector<std::unique_ptr<FrameRing>> inboxes_;  // null from a worker to itself
  std::vector<std::unique_ptr<FrameRing>> outgoing_;
  std::vector<std::atomic<uint64_t>> port_states_;  // per port queue
};

}  // namespace roci
