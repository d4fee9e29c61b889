// The two rings between a slot and another slot: copies frames into and out of them, or lends frames that lie in them.
//
// A direct frame is written once, by its sender, into the ring: begin() reserves room and returns a buffer that lies there,
// commit() ends it. A frame that is received in place is read once: its headers are copied, since they are read more than once
// and the sender can still change them, and its payload stays in the ring until the frame is freed.
#pragma once

#include <rte_mbuf.h>

#include <array>
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

// One thread at a time, also for freeing its frames. Outlives them.
class ShmLink {
 public:
  ShmLink(ShmSegment& segment, uint32_t own, uint32_t other)
      : out(segment.control(own, other), segment.ring(own, other), kShmRingBytes),
        in(segment.control(other, own), segment.ring(other, own), kShmRingBytes) {}
  ~ShmLink();
  ShmLink(const ShmLink&) = delete;
  ShmLink& operator=(const ShmLink&) = delete;

  struct Received {
    uint16_t frames = 0;
    bool all = false;  // nothing is left to read
  };
  enum class Payload : uint8_t {
    kCopied,
    kInPlace,  // of long RoCEv2 packets: a second segment that lies in the ring; the next call comes after they are freed
  };
  // Frames of up to `mtu`; counts in `stats`. Without a buffer a frame is dropped, as by a NIC: frames behind it may free buffers
  // that queue pairs keep.
  Received receive(std::span<rte_mbuf*> out, const MbufPool& pool, uint16_t mtu, Payload payload,
                   PortStats& stats);

  // A frame in the ring that has not been published.
  struct Written {
    std::span<uint8_t> bytes;  // may be changed until publish()
    uint64_t end;              // the writer's position behind it
  };
  // Copies the frame into the ring, which has room for it.
  Written write(const rte_mbuf& frame);

  // A buffer in the ring for a frame of so many bytes, of which it has none yet; null when the ring is full, or without a buffer of
  // the pool. commit() takes it over; a frame that is freed instead is not sent.
  rte_mbuf* begin(uint32_t frame_bytes, const MbufPool& pool);
  // Whether begin() of any link has returned the frame.
  static bool is_direct(const rte_mbuf& frame);
  // The frame is as long as begin() was told.
  Written commit(rte_mbuf& frame);

  // The reader sees what was written and committed, except for what stands behind a frame that was begun and not committed.
  // ShmSlotOwner::notify() comes after it.
  void publish();
  // Whether what was written since the last call wakes a reader that does not wait for acknowledgments: another frame, or more
  // than 64 KiB of them.
  bool take_urgent();

  // Records or positions of the other process that were out of range, since the last call.
  uint64_t take_malformed();

  ShmRingWriter out;
  ShmRingReader in;

 private:
  static constexpr uint32_t kMostBegun = 128;  // a power of two; more than a worker stages
  static constexpr uint32_t kMostSpare = 64;

  struct Begun {
    uint64_t position = 0;  // of the writer before it
    bool ended = false;     // committed or canceled
  };
  struct DirectFrame;
  struct InPlaceFrame;
  [[nodiscard]] Begun& begun(uint32_t number) { return begun_[number & (kMostBegun - 1)]; }
  void cancel(const DirectFrame& frame);
  void note_written(const rte_mbuf& frame, uint64_t end);
  rte_mbuf* refer_to(std::span<const uint8_t> record, const MbufPool& pool);

  uint64_t malformed_ = 0;  // as last taken
  bool urgent_ = false;
  std::array<Begun, kMostBegun> begun_{};
  uint32_t first_begun_ = 0, next_begun_ = 0;  // number entries of begun_, and wrap
  std::array<rte_mbuf*, kMostSpare> spare_{};  // of committed frames, to be used again
  uint32_t spares_ = 0;
  uint32_t in_place_ = 0;  // frames that lie in the ring `in` and have not been freed
};

}  // namespace roci
