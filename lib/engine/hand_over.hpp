// How the workers of a host pass each other frames, through bounded rings with one thread at each end:
//
//   inbox(from, to)   received packets whose queue pair belongs to `to`; what does not fit is lost, as on a full port
//   outgoing(from)    frames to be sent by a worker that has no port queue of its own; its relay sends them, and when
//                     the ring is full they wait
//
// A worker without a queue could share one under a lock for each burst instead. The relay keeps a port queue with one
// thread, as ethdev wants it, nobody spins while another sends, and virtual time does the same thing every time.
#pragma once

#include <rte_mbuf.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "base/spsc_ring.hpp"
#include "base/types.hpp"

namespace roci {

using FrameRing = SpscRing<rte_mbuf*>;

// The worker that a queue pair belongs to. The special queue pairs 0 and 1 are the first one's (IBTA 3.9.1).
constexpr uint32_t worker_of(Qpn number, uint32_t workers) {
  return workers == 1 || number.value() <= 1 ? 0 : number.value() % workers;
}

class HandOver {
 public:
  // A worker takes 32 frames of each of its rings per round; the rest is for those whose thread has lost its core for a
  // while.
  static constexpr uint32_t kRing = 512;

  // `queues` of the port: with fewer than workers, the first as many workers have one each.
  HandOver(uint32_t workers, uint32_t queues);
  ~HandOver();  // frees what nobody has taken
  HandOver(const HandOver&) = delete;
  HandOver& operator=(const HandOver&) = delete;

  [[nodiscard]] uint32_t workers() const { return workers_; }
  [[nodiscard]] uint32_t queues() const { return queues_; }
  // Of two different workers.
  [[nodiscard]] FrameRing& inbox(uint32_t from, uint32_t to) { return *inboxes_[from * workers_ + to]; }
  [[nodiscard]] bool needs_relay(uint32_t worker) const { return worker >= queues_; }
  // Of one that needs a relay.
  [[nodiscard]] FrameRing& outgoing(uint32_t from) { return *outgoing_[from]; }
  [[nodiscard]] uint32_t relay_of(uint32_t worker) const { return worker % queues_; }

 private:
  uint32_t workers_, queues_;
  std::vector<std::unique_ptr<FrameRing>> inboxes_;  // null from a worker to itself
  std::vector<std::unique_ptr<FrameRing>> outgoing_;
};

}  // namespace roci
