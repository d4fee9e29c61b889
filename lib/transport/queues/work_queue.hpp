// Send queue and receive queue of a queue pair: rings of work requests that application threads write (under the
// queue's lock) and the worker reads.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/os/spinlock.hpp"
#include "base/sequence.hpp"
#include "base/types.hpp"
#include "memory/flush_verbs.hpp"
#include "wire/headers/opcodes.hpp"

namespace roci {

struct AddressPath;

inline constexpr uint32_t kMaxMessage = 1U << 31;  // IBTA 9.3.3.1.2

// Work request of the send queue. The slot contains this header, followed by the scatter list or the inline data.
struct SendWqe {
  // As posted.
  uint64_t wr_id = 0;
  uint64_t remote_address = 0;
  uint64_t compare_add = 0;  // atomics, in host byte order; flush: bytes of the range
  uint64_t swap = 0;
  uint32_t rkey = 0;
  uint32_t length = 0;  // bytes of the whole message
  uint32_t immediate =
      0;  // big-endian, as in verbs; or in host byte order the R_Key to be invalidated, or FETH
  uint32_t send_flags = 0;  // ibv_send_flags
  ibv_wr_opcode opcode = IBV_WR_SEND;
  uint16_t sge_count = 0;  // 0 for inline data
  // Datagrams only:
  AddressPath* address = nullptr;  // referenced until the request has completed
  Qpn remote_qp{0};
  QKey qkey{0};
  // XRC only: the shared receive queue of the peer.
  Srqn remote_srq{0};

  // Set by the requester when it starts the request.
  bool started = false;
  ibv_wc_status local_error = IBV_WC_SUCCESS;  // detected at the post, or before its first packet was sent
  Psn first_psn;
  uint32_t packets = 0;    // its PSNs: one per response packet for a READ, none for a local operation
  uint32_t responses = 0;  // READ and atomics: response packets that have arrived
  Lsn first_lsn;

  [[nodiscard]] bool is_read() const { return opcode == IBV_WR_RDMA_READ; }
  [[nodiscard]] bool is_atomic() const {
    return opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
  }
  // Sends no packet (local_operations.hpp).
  [[nodiscard]] bool is_local() const { return opcode == IBV_WR_BIND_MW || opcode == IBV_WR_LOCAL_INV; }
  // The response has no data (IBTA annex A19).
  [[nodiscard]] bool is_placement() const { return opcode == IBV_WR_ATOMIC_WRITE || opcode == kWrFlush; }
  // Completes on its own responses, not on an acknowledgment.
  [[nodiscard]] bool needs_response() const {
    constexpr unsigned kAnswered = 1U << IBV_WR_RDMA_READ | 1U << IBV_WR_ATOMIC_CMP_AND_SWP |
                                   1U << IBV_WR_ATOMIC_FETCH_AND_ADD | 1U << IBV_WR_ATOMIC_WRITE |
                                   1U << kWrFlush;
    return (kAnswered >> opcode & 1U) != 0;
  }
  [[nodiscard]] bool is_inline() const { return (send_flags & IBV_SEND_INLINE) != 0; }
  [[nodiscard]] Psn last_psn() const { return first_psn + (packets - 1); }
  [[nodiscard]] const ibv_sge* sges() const { return reinterpret_cast<const ibv_sge*>(this + 1); }
  [[nodiscard]] std::span<const ibv_sge> pieces() const { return {sges(), sge_count}; }
  [[nodiscard]] const uint8_t* inline_data() const { return reinterpret_cast<const uint8_t*>(this + 1); }
};

// Work request of the receive queue, followed by its scatter list.
struct RecvWqe {
  uint64_t wr_id = 0;
  uint32_t capacity = 0;  // bytes of its scatter list
  uint32_t sge_count = 0;
  [[nodiscard]] const ibv_sge* sges() const { return reinterpret_cast<const ibv_sge*>(this + 1); }
  [[nodiscard]] std::span<const ibv_sge> pieces() const { return {sges(), sge_count}; }
  // Copies a posted request. The slot has space for `max_sge` elements; false when the request has more.
  bool fill(const ibv_recv_wr& wr, uint32_t max_sge);
  // Copies the request of another slot, whose elements fit.
  void copy(const RecvWqe& other) {
    *this = other;
    if (sge_count > 0) std::memcpy(static_cast<void*>(this + 1), other.sges(), sizeof(ibv_sge) * sge_count);
  }
};

inline bool RecvWqe::fill(const ibv_recv_wr& wr, uint32_t max_sge) {
  if (wr.num_sge < 0 || static_cast<uint32_t>(wr.num_sge) > max_sge) return false;
  uint64_t bytes = 0;
  for (int i = 0; i < wr.num_sge; ++i) bytes += wr.sg_list[i].length;
  wr_id = wr.wr_id;
  capacity = static_cast<uint32_t>(bytes < kMaxMessage ? bytes : kMaxMessage);
  sge_count = static_cast<uint32_t>(wr.num_sge);
  if (wr.num_sge > 0) std::memcpy(static_cast<void*>(this + 1), wr.sg_list, sizeof(ibv_sge) * sge_count);
  return true;
}

// Ring of fixed-size slots. Indices are free-running and wrap at 2^32; the capacity is a power of two. A slot is not
// written before its first use, so an idle ring needs no memory.
//
// The members are written by posters or constant. The consumer index `done` is in a cache line of the worker. Posters
// read it only when the ring seems full.
template <class Wqe>
class WorkRing {
 public:
  // Bytes of a slot with `trailer` bytes after the header. A multiple of 32, so that a request occupies no more cache
  // lines than with a multiple of 64.
  static constexpr uint32_t stride(uint32_t trailer) {
    return static_cast<uint32_t>((sizeof(Wqe) + trailer + 31) & ~size_t{31});
  }
  static constexpr size_t bytes(uint32_t capacity, uint32_t trailer) {
    return size_t{capacity} * stride(trailer);
  }

  // `storage` has bytes(capacity, trailer), aligned to 64; `done` is 0. Both are owned by the caller and outlive the
  // ring.
  WorkRing(uint32_t capacity, uint32_t trailer, void* storage, std::atomic<uint32_t>& done)
      : storage_(static_cast<std::byte*>(storage)),
        done_(done),
        mask_(capacity - 1),
        stride_(static_cast<uint16_t>(stride(trailer))) {}

  [[nodiscard]] uint32_t capacity() const { return mask_ + 1; }
  [[nodiscard]] Wqe& at(uint32_t index) {
    return *reinterpret_cast<Wqe*>(storage_ + size_t{index & mask_} * stride_);
  }
  [[nodiscard]] void* storage() const { return storage_; }

  // Poster, under `lock`.
  [[nodiscard]] uint32_t free_slots() {
    seen_done_ = done_.load(std::memory_order_acquire);
    return capacity() - (posted_.load(std::memory_order_relaxed) - seen_done_);
  }
  [[nodiscard]] bool full() {
    const uint32_t posted = posted_.load(std::memory_order_relaxed);
    if (posted - seen_done_ < capacity()) return false;
    seen_done_ = done_.load(std::memory_order_acquire);
    return posted - seen_done_ >= capacity();
  }
  // The next slot to be written. publish() makes it visible to the worker; with memory_order_seq_cst it is also ordered
  // before the poster's next load.
  Wqe& next_free() { return *new (&at(posted_.load(std::memory_order_relaxed))) Wqe; }
  void publish(std::memory_order order = std::memory_order_release) {
    posted_.store(posted_.load(std::memory_order_relaxed) + 1, order);
  }

  // Worker.
  [[nodiscard]] uint32_t posted() const { return posted_.load(std::memory_order_seq_cst); }
  [[nodiscard]] uint32_t head() const { return done_.load(std::memory_order_relaxed); }
  [[nodiscard]] bool empty() const { return head() == posted(); }
  void pop() { done_.store(head() + 1, std::memory_order_release); }
  // Discards all requests. No thread may post concurrently.
  void clear() { done_.store(posted_.load(std::memory_order_acquire), std::memory_order_release); }

 private:
  std::byte* const storage_;
  std::atomic<uint32_t>& done_;
  std::atomic<uint32_t> posted_{0};
  uint32_t seen_done_ = 0;  // under the lock: last value of done_ that was read
  const uint32_t mask_;     // capacity minus 1
  const uint16_t stride_;   // bytes

 public:
  Spinlock lock;
};
static_assert(sizeof(WorkRing<SendWqe>) == 32);  // both queues fit in one cache line

// Position of a packet in the send queue.
struct SendCursor {
  uint32_t index = 0;   // of the request
  uint32_t packet = 0;  // within the request
};

}  // namespace roci
