// The two rings between a slot and another slot. Copies frames into and out of them, or lends buffers that lie in them.
//
// Direct frames: the sender writes the frame once, directly into the ring. begin() reserves space and
// returns a buffer in the ring; commit() completes the frame. Frames received in place: the receiver
// copies the headers, because it reads them more than once and the sender can still modify them. The
// payload stays in the ring until the frame is freed.
#pragma once

#include <rte_mbuf.h>

#include <array>
#include <cstdint>
#include <span>

#include "port/dpdk/mbuf_pool.hpp"
#include "port/port.hpp"
#include "port/shm/shm_ring.hpp"
#include "port/shm/shm_segment.hpp"

namespace roci {

// The maximum MTU of a port with these rings.
inline constexpr uint32_t kShmMostMtu = kShmMostFrame - kShmLeastFrame - 2 * sizeof(VlanHeader);

// Copies the bytes into an mbuf; null if the pool is empty.
rte_mbuf* copy_in(const MbufPool& pool, std::span<const uint8_t> bytes);

// A pair of rings. One thread at a time, also for freeing its frames. Must outlive its frames.
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
    bool all = false;  // the ring is empty
  };
  enum class Payload : uint8_t {
    kCopied,
    // Long RoCEv2 packets: the second segment lies in the ring; must be freed before the next receive().
    kInPlace,
  };
  // Receives frames of at most `mtu`, and counts them in `stats`. If the pool is empty, frames are dropped, as a NIC
  // does: later frames may free buffers that queue pairs hold.
  Received receive(std::span<rte_mbuf*> out, const MbufPool& pool, uint16_t mtu, Payload payload,
                   PortStats& stats);

  // A frame in the ring that is not published yet.
  struct Written {
    std::span<uint8_t> bytes;  // may be modified until publish()
    uint64_t end;              // writer position after the frame
  };
  // Copies the frame into the ring, which must have space for it.
  Written write(const rte_mbuf& frame);

  // Returns an empty buffer in the ring for a frame of exactly `frame_bytes`; null if the ring is full or the pool is
  // empty. commit() takes ownership of it. A frame that is freed instead is not sent.
  rte_mbuf* begin(uint32_t frame_bytes, const MbufPool& pool);
  // Whether begin() of any link has returned the frame.
  static bool is_direct(const rte_mbuf& frame);
  // The frame must have the length that was passed to begin().
  Written commit(rte_mbuf& frame);

  // Makes the written and committed frames visible to the reader, up to the first frame that was started and not
  // committed. The caller then calls ShmSlotOwner::notify().
  void publish();
  // Whether the frames since the last call must wake a reader that does not wait for acknowledgments: a frame that is
  // no acknowledgment, or more than 64 KiB of acknowledgments.
  bool take_urgent();

  // Called when the ring is full: whether the reader must be woken without a frame. Another process has overwritten the
  // reader's position, which the reader stores again in its next poll. At most once per kRepairInterval.
  bool must_wake_reader(Nanos now);

  // Number of records and positions of the other process that were out of range since the last call.
  uint64_t take_malformed();

  ShmRingWriter out;
  ShmRingReader in;

 private:
  static constexpr Nanos kRepairInterval{10'000'000};
  // Power of two; larger than the number of frames that a worker stages.
  static constexpr uint32_t kMaxUnfinished = 128;
  static constexpr uint32_t kMaxSpare = 64;

  struct Started {
    uint64_t position = 0;  // of the writer, before the frame
    bool ended = false;     // committed or canceled
  };
  struct DirectFrame;
  struct InPlaceFrame;
  [[nodiscard]] Started& started(uint32_t number) { return started_[number & (kMaxUnfinished - 1)]; }
  void cancel(const DirectFrame& frame);
  void skip_ended();
  void note_written(const rte_mbuf& frame, uint64_t end);
  rte_mbuf* refer_to(std::span<const uint8_t> record, const MbufPool& pool);

  uint64_t malformed_ = 0;  // total at the last take_malformed()
  uint64_t refused_ = 0;    // at the last must_wake_reader()
  Nanos repaired_at_{0};    // when it last returned true; 0: never
  bool urgent_ = false;
  std::array<Started, kMaxUnfinished> started_{};
  uint32_t first_started_ = 0, next_started_ = 0;  // indices into started_, which wrap
  std::array<rte_mbuf*, kMaxSpare> spare_{};       // committed mbufs, for reuse
  uint32_t spares_ = 0;
  uint32_t in_place_ = 0;  // frames that lie in the ring `in` and have not been freed
};

}  // namespace roci
