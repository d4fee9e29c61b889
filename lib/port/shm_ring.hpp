// A ring of frames in memory that two processes share: one writes, one reads. Neither trusts the other: each keeps its own
// position in private memory, reads the other's position once for each use, and validates it before use. A process that is
// killed between any two instructions leaves the ring usable for the other one, and for its own successor.
//
//   head                 tail
//    |<-- written ------->|<-- free --------- ... |   positions count bytes since the ring was made; offset = position mod size
//
// A record is a header of 16 bytes and the frame, padded to a multiple of 64. A record never wraps: where the rest of the ring is
// too short, a padding record fills it. Memory order: the writer publishes with a release store of `tail`, the reader frees with
// a release store of `head`. The writer may publish, and the reader may free, less than it has written or read.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

namespace roci {

// In shared memory. Zero is an empty ring.
struct ShmRingControl {
  alignas(64) std::atomic<uint64_t> tail{0};  // written by the writer alone
  alignas(64) std::atomic<uint64_t> head{0};  // written by the reader alone
};
static_assert(sizeof(ShmRingControl) == 128 && std::atomic<uint64_t>::is_always_lock_free);

struct ShmRecord {
  static constexpr uint32_t kFrame = 1, kPadding = 2;
  uint32_t bytes;  // of the frame, or of the whole padding record: a multiple of 64
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

// One thread at a time.
class ShmRingWriter {
 public:
  // `size` is a power of two, at least 32 KiB. Continues at the position that the last writer left.
  ShmRingWriter(ShmRingControl& control, std::byte* data, uint32_t size);

  // Room for a frame of kShmLeastFrame to kShmMostFrame bytes, which the caller writes; null when the ring is full. The reader
  // sees it after publish().
  uint8_t* reserve(uint32_t frame_bytes);
  // The position behind the last reservation.
  [[nodiscard]] uint64_t position() const { return tail_; }
  // Undoes the reservations since the writer was at `position`; none of them has been published.
  void take_back(uint64_t position) { tail_ = position; }
  // Makes a padding record of a reservation that has not been published: reserve() has returned `room` for so many bytes.
  static void cancel(uint8_t* room, uint32_t frame_bytes);
  // Whether reserve() would return room for a frame of so many bytes, or of fewer. May read the reader's position.
  [[nodiscard]] bool has_room(uint32_t frame_bytes);
  void publish() { publish(tail_); }
  // The reader sees the reservations up to `position`.
  void publish(uint64_t position);
  // Bytes that the reader has not freed, as far as last read; refresh() reads its position.
  [[nodiscard]] uint64_t used() const { return tail_ - head_; }
  // The same without what was reserved behind `position`.
  [[nodiscard]] uint64_t used_up_to(uint64_t position) const { return position - head_; }
  void refresh();
  // Whether the reader has freed everything that was published. Reads its position.
  [[nodiscard]] bool drained() {
    refresh();
    return head_ == published_;
  }
  // The reader's position as last read: a reader that is alive moves it.
  [[nodiscard]] uint64_t freed() const { return head_; }
  // Reader positions that were out of range, and ignored.
  [[nodiscard]] uint64_t refused() const { return refused_; }

 private:
  uint8_t* append(uint32_t offset, uint32_t kind, uint32_t bytes);

  ShmRingControl& control_;
  std::byte* const data_;
  const uint32_t size_;
  uint64_t tail_;
  uint64_t published_;
  uint64_t head_ = 0;    // the reader's, as last validated
  uint64_t looked_ = 0;  // tail_ / kReuse when emptiness was last checked
  uint64_t refused_ = 0;
};

// One thread at a time.
class ShmRingReader {
 public:
  // Skips what was written before: it was for an earlier reader.
  ShmRingReader(ShmRingControl& control, const std::byte* data, uint32_t size);

  // The oldest frame, in shared memory, where its bytes may change at any time; empty when there is none. A record with
  // values out of range empties the ring and counts as malformed().
  std::span<const uint8_t> front();
  void pop() { head_ = next_; }
  // Gives the room of popped frames back to the writer.
  void release();
  // Whether the writer has published something that was not read. Reads its position.
  [[nodiscard]] bool has_more();
  [[nodiscard]] uint64_t malformed() const { return malformed_; }

 private:
  bool read_tail();
  void skip_all();

  ShmRingControl& control_;
  const std::byte* const data_;
  const uint32_t size_;
  uint64_t head_;
  uint64_t tail_;      // the writer's, as last validated
  uint64_t next_ = 0;  // behind the frame that front() returned
  uint64_t released_;
  uint64_t malformed_ = 0;
};

}  // namespace roci
