#include "port/shm/shm_ring.hpp"

#include <cassert>
#include <cstring>

namespace roci {
namespace {

// An empty ring restarts at offset 0 after this many bytes, so that light traffic
// stays in the CPU cache and touches no further memory.
constexpr uint64_t kReuse = 64 * 1024;

// Number of consecutive padding records that a reader skips in one
// call. A writer cannot block the reader with more of them.
constexpr unsigned kMaxPadding = 64;

constexpr uint64_t align_up(uint64_t position) {
  return (position + kShmRecordAlign - 1) & ~uint64_t{kShmRecordAlign - 1};
}

// Reads each field once: the other process may modify them between two reads.
ShmRecord read_record(const std::byte* at) {
  const auto* record = reinterpret_cast<const ShmRecord*>(at);
  ShmRecord read{};
  read.bytes = __atomic_load_n(&record->bytes, __ATOMIC_RELAXED);
  read.kind = __atomic_load_n(&record->kind, __ATOMIC_RELAXED);
  return read;
}

}  // namespace

ShmRingWriter::ShmRingWriter(ShmRingControl& control, std::byte* data, uint32_t size)
    : control_(control),
      data_(data),
      size_(size),
      tail_(align_up(control.tail.load(std::memory_order_acquire))),
      published_(tail_) {
  assert((size & (size - 1)) == 0 && size >= 32 * 1024);
  // The ring counts as full until the reader's position has been validated.
  head_ = tail_ - size_;
  control_.tail.store(tail_, std::memory_order_release);
  refresh();
}

void ShmRingWriter::refresh() {
  // A position before the last one would make has_space() and reserve() disagree.
  const uint64_t head = control_.head.load(std::memory_order_acquire);
  if (head - head_ <= published_ - head_ && head % kShmRecordAlign == 0) {
    head_ = head;
  } else {
    ++refused_;
    // Another process may have overwritten the writer's position instead: a reader that has started since is there.
    control_.tail.store(published_, std::memory_order_release);
  }
}

uint8_t* ShmRingWriter::append(uint32_t offset, uint32_t kind, uint32_t bytes) {
  auto* record = reinterpret_cast<ShmRecord*>(data_ + offset);
  *record = {bytes, kind, 0};
  return reinterpret_cast<uint8_t*>(record + 1);
}

uint8_t* ShmRingWriter::reserve(uint32_t frame_bytes) {
  assert(frame_bytes >= kShmLeastFrame && frame_bytes <= kShmMostFrame);
  const uint32_t need = shm_record_bytes(frame_bytes);
  auto offset = static_cast<uint32_t>(tail_ & (size_ - 1));
  bool restart = need > size_ - offset;
  if (!restart && offset >= kReuse && tail_ / kReuse != looked_) {
    looked_ = tail_ / kReuse;
    restart = drained() && published_ == tail_;
  }
  const uint64_t padding = restart ? size_ - offset : 0;
  if (used() + padding + need > size_) {
    refresh();
    if (used() + padding + need > size_) return nullptr;
  }
  if (restart) {
    append(offset, ShmRecord::kPadding, static_cast<uint32_t>(padding));
    tail_ += padding;
    offset = 0;
  }
  tail_ += need;
  return append(offset, ShmRecord::kFrame, frame_bytes);
}

bool ShmRingWriter::has_space(uint32_t frame_bytes) {
  const uint32_t need = shm_record_bytes(frame_bytes);
  const auto left = size_ - static_cast<uint32_t>(tail_ & (size_ - 1));
  const uint64_t most = size_ - need - (need > left ? left : 0);
  if (used() <= most) return true;
  refresh();
  return used() <= most;
}

void ShmRingWriter::cancel(uint8_t* space, uint32_t frame_bytes) {
  auto* record = reinterpret_cast<ShmRecord*>(space) - 1;
  *record = {shm_record_bytes(frame_bytes), ShmRecord::kPadding, 0};
}

void ShmRingWriter::publish(uint64_t position) {
  published_ = position;
  control_.tail.store(position, std::memory_order_release);
}

ShmRingReader::ShmRingReader(ShmRingControl& control, const std::byte* data, uint32_t size)
    : control_(control),
      data_(data),
      size_(size),
      head_(align_up(control.tail.load(std::memory_order_acquire))),
      tail_(head_),
      released_(head_) {
  control_.head.store(head_, std::memory_order_release);
}

// Sequentially consistent: pairs with the fence of ShmSlotOwner::notify(). The reader clears its pending bit and then
// loads `tail`; the writer stores `tail` and, after the fence, loads the bit. Either this load returns the new
// position, or the writer sets the bit again.
bool ShmRingReader::read_tail() {
  const uint64_t tail = control_.tail.load(std::memory_order_seq_cst);
  if (tail == head_) return false;
  if (tail - head_ > size_ || tail % kShmRecordAlign != 0) {
    tail_ = align_up(tail);
    skip_all();
    return false;
  }
  tail_ = tail;
  return true;
}

void ShmRingReader::skip_all() {
  ++malformed_;
  head_ = tail_;
  release();
}

bool ShmRingReader::has_more() { return head_ != tail_ || read_tail(); }

// Bounded: a writer cannot block the reader by publishing padding records or changing its position.
std::span<const uint8_t> ShmRingReader::front() {
  for (unsigned records = 0; records <= kMaxPadding && (head_ != tail_ || read_tail()); ++records) {
    const auto offset = static_cast<uint32_t>(head_ & (size_ - 1));
    const uint32_t left = size_ - offset;
    const ShmRecord record = read_record(data_ + offset);
    if (record.kind == ShmRecord::kPadding && record.bytes != 0 && record.bytes % kShmRecordAlign == 0 &&
        record.bytes <= left && record.bytes <= tail_ - head_) {
      head_ += record.bytes;
      continue;
    }
    const bool fits =
        record.kind == ShmRecord::kFrame && record.bytes >= kShmLeastFrame && record.bytes <= kShmMostFrame;
    const uint32_t bytes = fits ? shm_record_bytes(record.bytes) : 0;
    if (!fits || bytes > left || bytes > tail_ - head_) break;
    next_ = head_ + bytes;
    return {reinterpret_cast<const uint8_t*>(data_ + offset) + sizeof(ShmRecord), record.bytes};
  }
  if (head_ != tail_) skip_all();
  return {};
}

// Stores the position again if another process has modified it: with a wrong
// position the writer could count the ring as full forever.
void ShmRingReader::release() {
  if (released_ == head_ && control_.head.load(std::memory_order_relaxed) == head_) return;
  released_ = head_;
  control_.head.store(head_, std::memory_order_release);
}

}  // namespace roci
