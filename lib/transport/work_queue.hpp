// The send queue and the receive queue of a queue pair: rings of work requests that any application thread fills
// (under the queue's lock) and the worker empties.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
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

// A ring of fixed-size slots. Indices run freely and wrap at 2^32; the capacity is a power of two.
template <class Wqe>
class WorkRing {
 public:
  // `trailer`: bytes behind the header of each slot.
  WorkRing(uint32_t capacity, uint32_t trailer)
      : capacity_(capacity),
        stride_(static_cast<uint32_t>((sizeof(Wqe) + trailer + 31) & ~size_t{31})),
        storage_(static_cast<std::byte*>(::operator new (size_t{capacity} * stride_, std::align_val_t{64}))) {
  }

  [[nodiscard]] uint32_t capacity() const { return capacity_; }
  [[nodiscard]] Wqe& at(uint32_t index) {
    return *reinterpret_cast<Wqe*>(storage_.get() + size_t{index & (capacity_ - 1)} * stride_);
  }

  // The poster's side, under `lock`.
  alignas(64) Spinlock lock;
  [[nodiscard]] bool full() const {
    return posted_.load(std::memory_order_relaxed) - done_.load(std::memory_order_acquire) >= capacity_;
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
  struct Free {
    void operator()(std::byte* p) const { ::operator delete (p, std::align_val_t{64}); }
  };
  std::atomic<uint32_t> posted_{0};  // in the line that posters write, with their lock

  // The line that the worker writes; posters look there for room before they need the rest of it. A stride of 32 bytes
  // lets no request lie in more lines than one of 64 would.
  alignas(64) std::atomic<uint32_t> done_{0};
  uint32_t capacity_;
  uint32_t stride_;  // bytes
  std::unique_ptr<std::byte, Free> storage_;
};

}  // namespace roci
