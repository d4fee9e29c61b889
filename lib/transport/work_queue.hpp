// The send queue and the receive queue of a queue pair: rings of work requests that any application thread fills
// (under the queue's lock) and the worker empties.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/sequence.hpp"
#include "base/spinlock.hpp"
#include "base/types.hpp"
#include "wire/opcodes.hpp"

namespace roci {

struct AddressPath;

inline constexpr uint32_t kLongestMessage = 1U << 31;  // IBTA 9.3.3.1.2

// One work request of the send queue. The slot holds this header and behind it the scatter list or, for inline
// requests, the data itself.
struct SendWqe {
  // As posted.
  uint64_t wr_id = 0;
  uint64_t remote_address = 0;
  uint64_t compare_add = 0;  // atomics, in host order
  uint64_t swap = 0;
  uint32_t rkey = 0;
  uint32_t length = 0;      // bytes of the whole message
  uint32_t immediate = 0;   // as the verbs give it: big-endian; or the R_Key to be invalidated, in host order
  uint32_t send_flags = 0;  // ibv_send_flags
  ibv_wr_opcode opcode = IBV_WR_SEND;
  uint16_t sge_count = 0;  // 0 for inline
  // Datagrams only:
  AddressPath* address = nullptr;  // held until the request is done
  Qpn remote_qp{0};
  QKey qkey{0};
  // XRC only: the shared receive queue of the peer.
  Srqn remote_srq{0};

  // Set by the requester when it starts the request.
  bool started = false;
  ibv_wc_status local_error = IBV_WC_SUCCESS;  // found before anything of it was sent
  Psn first_psn;
  uint32_t packets = 0;    // PSNs it takes; a READ takes one per response packet, a local operation none
  uint32_t responses = 0;  // READ and atomics: response packets that have arrived
  Lsn first_lsn;

  [[nodiscard]] bool is_read() const { return opcode == IBV_WR_RDMA_READ; }
  [[nodiscard]] bool is_atomic() const {
    return opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
  }
  // Sends nothing (local_operations.hpp).
  [[nodiscard]] bool is_local() const { return opcode == IBV_WR_BIND_MW || opcode == IBV_WR_LOCAL_INV; }
  // An acknowledgement does not complete it: it needs the data of its own responses.
  [[nodiscard]] bool needs_response() const { return is_read() || is_atomic(); }
  [[nodiscard]] bool is_inline() const { return (send_flags & IBV_SEND_INLINE) != 0; }
  [[nodiscard]] Psn last_psn() const { return first_psn + (packets - 1); }
  [[nodiscard]] const ibv_sge* sges() const { return reinterpret_cast<const ibv_sge*>(this + 1); }
  [[nodiscard]] std::span<const ibv_sge> pieces() const { return {sges(), sge_count}; }
  [[nodiscard]] const uint8_t* inline_data() const { return reinterpret_cast<const uint8_t*>(this + 1); }
};

struct RecvWqe {
  uint64_t wr_id = 0;
  uint32_t capacity = 0;  // bytes its scatter list holds
  uint32_t sge_count = 0;
  [[nodiscard]] const ibv_sge* sges() const { return reinterpret_cast<const ibv_sge*>(this + 1); }
  [[nodiscard]] std::span<const ibv_sge> pieces() const { return {sges(), sge_count}; }
  // Takes over a request as it was posted. The slot has room for `max_sge` pieces behind it; false when it asks for
  // more.
  bool fill(const ibv_recv_wr& wr, uint32_t max_sge);
  // The same for another slot's request, whose pieces fit.
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
  capacity = static_cast<uint32_t>(bytes < kLongestMessage ? bytes : kLongestMessage);
  sge_count = static_cast<uint32_t>(wr.num_sge);
  if (wr.num_sge > 0) std::memcpy(static_cast<void*>(this + 1), wr.sg_list, sizeof(ibv_sge) * sge_count);
  return true;
}

// A ring of fixed-size slots. Indices run freely and wrap at 2^32; the capacity is a power of two. Nothing is written to a
// slot before it is used the first time, so that the memory of an idle ring need not be there.
//
// What lies here is what posters write, and what nobody writes. How far the worker is stands among the things that only
// the worker writes: posters look there when the ring seems full, and no more often.
template <class Wqe>
class WorkRing {
 public:
  // Bytes behind the header of each slot: `trailer`. A stride of 32 bytes lets no request lie in more lines than one of 64
  // would.
  static constexpr uint32_t stride(uint32_t trailer) {
    return static_cast<uint32_t>((sizeof(Wqe) + trailer + 31) & ~size_t{31});
  }
  static constexpr size_t bytes(uint32_t capacity, uint32_t trailer) {
    return size_t{capacity} * stride(trailer);
  }

  // `storage` has bytes(capacity, trailer), aligned to 64; `done` is 0. Both are the maker's and outlive the ring.
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

  // The poster's side, under `lock`.
  [[nodiscard]] uint32_t room() {
    seen_done_ = done_.load(std::memory_order_acquire);
    return capacity() - (posted_.load(std::memory_order_relaxed) - seen_done_);
  }
  [[nodiscard]] bool full() {
    const uint32_t posted = posted_.load(std::memory_order_relaxed);
    if (posted - seen_done_ < capacity()) return false;
    seen_done_ = done_.load(std::memory_order_acquire);
    return posted - seen_done_ >= capacity();
  }
  // The slot to fill next; publish() makes it visible to the worker. With memory_order_seq_cst it is also ordered
  // before whatever the poster looks at next.
  Wqe& next_free() { return *new (&at(posted_.load(std::memory_order_relaxed))) Wqe; }
  void publish(std::memory_order order = std::memory_order_release) {
    posted_.store(posted_.load(std::memory_order_relaxed) + 1, order);
  }

  // The worker's side.
  [[nodiscard]] uint32_t posted() const { return posted_.load(std::memory_order_seq_cst); }
  [[nodiscard]] uint32_t head() const { return done_.load(std::memory_order_relaxed); }
  [[nodiscard]] bool empty() const { return head() == posted(); }
  void pop() { done_.store(head() + 1, std::memory_order_release); }
  // Forgets everything; nobody may be posting.
  void clear() { done_.store(posted_.load(std::memory_order_acquire), std::memory_order_release); }

 private:
  std::byte* const storage_;
  std::atomic<uint32_t>& done_;
  std::atomic<uint32_t> posted_{0};
  uint32_t seen_done_ = 0;  // under the lock: done_ when it was last looked at
  const uint32_t mask_;     // one below the capacity
  const uint16_t stride_;   // bytes

 public:
  Spinlock lock;
};
static_assert(sizeof(WorkRing<SendWqe>) == 32);  // those of both queues are one cache line

// A packet of the send queue.
struct SendCursor {
  uint32_t index = 0;   // of the request
  uint32_t packet = 0;  // within it
};

}  // namespace roci
