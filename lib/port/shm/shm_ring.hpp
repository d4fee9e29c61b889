// Ring of frames in memory shared by two processes, one writer and one reader. Neither trusts the other.
// Each keeps its own position in private memory, reads the other's position once per use, and validates
// it before use. If a process is killed between any two instructions, the ring remains usable for the
// other process and for the killed process's successor.
//
//   head                 tail
//    |<-- written ------->|<-- free --------- ... |   positions: bytes since creation; offset = position mod size
//
// A record is a 16-byte header and the frame, padded to a multiple of 64 bytes. A record never wraps: if the rest of
// the ring is too short, a padding record fills it. Memory order: the writer publishes with a release store of `tail`,
// and the reader frees with a release store of `head`. The writer may publish less than it has written, and the reader
// may free less than it has read.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

namespace roci {

// Positions in shared memory. All zero is an empty ring.
struct ShmRingControl {
  alignas(64) std::atomic<uint64_t> tail{0};  // only the writer stores it
  alignas(64) std::atomic<uint64_t> head{0};  // only the reader stores it
};
static_assert(sizeof(ShmRingControl) == 128 && std::atomic<uint64_t>::is_always_lock_free);

struct ShmRecord {
  static constexpr uint32_t kFrame = 1, kPadding = 2;
  uint32_t bytes;  // of the frame; or of the whole padding record, a multiple of 64
  uint32_t kind;
  uint64_t unused;
};
static_assert(sizeof(ShmRecord) == 16);

inline constexpr uint32_t kShmRecordAlign = 64;
inline constexpr uint32_t kShmMostFrame = 9728;  // bytes
inline constexpr uint32_t kShmLeastFrame = 14;   // an Ethernet header
constexpr uint32_t shm_record_bytes(uint32_t frame_bytes) {
  return (static_cast<uint32_t>(sizeof(ShmRecord)) + frame_bytes + kShmRecordAlign - 1) &
         ~(kShmRecordAlign - 1);
}

// Writer of a ring. One thread at a time.
class ShmRingWriter {
 public:
  // `size` is a power of two, at least 32 KiB. Continues at the position of the previous writer.
  ShmRingWriter(ShmRingControl& control, std::byte* data, uint32_t size);

  // Reserves space for a frame of kShmLeastFrame to kShmMostFrame bytes, which the caller writes; null if the ring is
  // full. The reader sees the frame after publish().
  uint8_t* reserve(uint32_t frame_bytes);
  // The position after the last reservation.
  [[nodiscard]] uint64_t position() const { return tail_; }
  // Reverts the reservations made since the writer was at `position`. None of them may have been published.
  void take_back(uint64_t position) { tail_ = position; }
  // Turns an unpublished reservation into a padding record. reserve() has returned `space` for `frame_bytes`.
  static void cancel(uint8_t* space, uint32_t frame_bytes);
  // Whether reserve() would succeed for a frame of at most `frame_bytes`. May read the reader's position.
  [[nodiscard]] bool has_space(uint32_t frame_bytes);
  void publish() { publish(tail_); }
  // Makes the reservations up to `position` visible to the reader.
  void publish(uint64_t position);
  // Number of bytes that the reader has not freed, based on its last read position; refresh() reads the position.
  [[nodiscard]] uint64_t used() const { return tail_ - head_; }
  // The same without reservations after `position`.
  [[nodiscard]] uint64_t used_up_to(uint64_t position) const { return position - head_; }
  void refresh();
  // Whether the reader has freed all published bytes. Reads its position.
  [[nodiscard]] bool drained() {
    refresh();
    return head_ == published_;
  }
  // Position after the last frame that is visible to the reader.
  [[nodiscard]] uint64_t published() const { return published_; }
  // The reader's position when last read. A running reader advances it.
  [[nodiscard]] uint64_t freed() const { return head_; }
  // Number of invalid reader positions, which were ignored.
  [[nodiscard]] uint64_t refused() const { return refused_; }

 private:
  uint8_t* append(uint32_t offset, uint32_t kind, uint32_t bytes);

  ShmRingControl& control_;
  std::byte* const data_;
  const uint32_t size_;
  uint64_t tail_;
  uint64_t published_;
  uint64_t head_ = 0;    // of the reader, when last validated
  uint64_t looked_ = 0;  // tail_ / kReuse when drained() was last checked
  uint64_t refused_ = 0;
};

// Reader of a ring. One thread at a time.
class ShmRingReader {
 public:
  // Skips the frames written so far, which were for an earlier reader.
  ShmRingReader(ShmRingControl& control, const std::byte* data, uint32_t size);

  // The oldest frame, in shared memory, whose bytes may change at any time; empty if there is no frame. If a record has
  // invalid values, all published records are skipped and malformed() is incremented.
  std::span<const uint8_t> front();
  void pop() { head_ = next_; }
  // Frees the space of popped frames for the writer.
  void release();
  // Whether the writer has published unread records. Reads the writer's position.
  [[nodiscard]] bool has_more();
  [[nodiscard]] uint64_t malformed() const { return malformed_; }

 private:
  bool read_tail();
  void skip_all();

  ShmRingControl& control_;
  const std::byte* const data_;
  const uint32_t size_;
  uint64_t head_;
  uint64_t tail_;      // of the writer, when last validated
  uint64_t next_ = 0;  // after the frame that front() returned
  uint64_t released_;
  uint64_t malformed_ = 0;
};

}  // namespace roci
