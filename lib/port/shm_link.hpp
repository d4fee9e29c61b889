// The two rings between a slot and another slot: copies frames into and out of them.
#pragma once

#include <rte_mbuf.h>

#include <cstdint>
#include <span>

#include "port/eal.hpp"
#include "port/port.hpp"
#include "port/shm_ring.hpp"
#include "port/shm_segment.hpp"

namespace roci {

// The largest MTU of a port over these rings.
inline constexpr uint32_t kShmMostMtu = kShmMostFrame - kShmLeastFrame - 2 * sizeof(VlanHeader);

// A copy of the bytes; null without a buffer.
rte_mbuf* copy_in(const MbufPool& pool, std::span<const uint8_t> bytes);

// One thread at a time.
class ShmLink {
 public:
  ShmLink(ShmSegment& segment, uint32_t own, uint32_t other)
      : out(segment.control(own, other), segment.ring(own, other), kShmRingBytes),
        in(segment.control(other, own), segment.ring(other, own), kShmRingBytes) {}

  struct Received {
    uint16_t frames = 0;
    bool all = false;  // nothing is left to read
  };
  // Frames of up to `mtu`; counts in `stats`. Without a buffer a frame is dropped, as by a NIC: frames behind it may free buffers
  // that queue pairs keep.
  Received receive(std::span<rte_mbuf*> out, const MbufPool& pool, uint16_t mtu, PortStats& stats);

  // Copies the frame into the ring, which has room for it. Returns the copy, which may be changed until publish().
  std::span<uint8_t> write(const rte_mbuf& frame);
  // The reader sees what was written. ShmSlotOwner::notify() comes after it.
  void publish() { out.publish(); }
  // Whether what was written since the last call wakes a reader that does not wait for acknowledgments: another frame, or more
  // than 64 KiB of them.
  bool take_urgent();

  // Records or positions of the other process that were out of range, since the last call.
  uint64_t take_malformed();

  ShmRingWriter out;
  ShmRingReader in;

 private:
  uint64_t malformed_ = 0;  // as last taken
  bool urgent_ = false;
};

}  // namespace roci
