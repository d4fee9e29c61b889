// Frames of a host to itself, which wait for the next reception. The network would not return them: a switch does not
// send a frame to the port on which it arrived. NICs loop back as well.
#pragma once

#include <rte_mbuf.h>

#include <cstdint>
#include <span>

#include "base/containers/growing_ring.hpp"

namespace roci {

// Looped back frames of one worker, which owns them. Each ring has a limit, so that none allocates.
class Loopback {
 public:
  Loopback() = default;
  ~Loopback() {
    while (!frames_.empty()) rte_pktmbuf_free(frames_.pop());
    while (!multicasts_.empty()) rte_pktmbuf_free(multicasts_.pop());
  }
  Loopback(const Loopback&) = delete;
  Loopback& operator=(const Loopback&) = delete;

  // Takes ownership of a frame between queue pairs of this host. While full(), no sender starts a quantum of packets.
  void push(rte_mbuf* frame) { frames_.push(frame); }
  [[nodiscard]] bool full() const { return frames_.size() >= kMaxFrames; }
  [[nodiscard]] bool has_frames() const { return !frames_.empty(); }
  // Moves the oldest frames to `out`; returns their number.
  uint32_t pop(std::span<rte_mbuf*> out) {
    uint32_t count = 0;
    while (count < out.size() && !frames_.empty()) out[count++] = frames_.pop();
    return count;
  }

  // Keeps a copy of a multicast of this host for its own members, because the port may modify the frame. False without
  // space or buffer.
  bool copy_multicast(const rte_mbuf& frame, rte_mempool* pool) {
    rte_mbuf* copy =
        multicasts_.size() < kMaxMulticasts ? rte_pktmbuf_copy(&frame, pool, 0, UINT32_MAX) : nullptr;
    if (copy != nullptr) multicasts_.push(copy);
    return copy != nullptr;
  }
  [[nodiscard]] bool has_multicasts() const { return !multicasts_.empty(); }
  rte_mbuf* pop_multicast() { return multicasts_.pop(); }

 private:
  static constexpr size_t kMaxFrames = 256;
  // Packets of the quantum that fills the ring: at most 64 (`packets_per_turn`), acknowledgments and probes.
  static constexpr size_t kMaxOverrun = 256;
  static constexpr size_t kMaxMulticasts = 256;

  GrowingRing<rte_mbuf*> frames_{kMaxFrames + kMaxOverrun};
  GrowingRing<rte_mbuf*> multicasts_{kMaxMulticasts};
};

}  // namespace roci
