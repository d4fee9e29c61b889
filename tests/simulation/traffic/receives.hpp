// Receive requests of a queue pair, or of the queue pairs that share a receive queue: memory slots that are posted,
// filled, checked and posted again.
#pragma once

#include <deque>
#include <memory>
#include <optional>

#include "simulation/traffic/arena.hpp"
#include "simulation/verifier.hpp"

namespace roci::test {

// First wr_id of receives. Sends have lower ones.
inline constexpr uint64_t kFirstReceiveId = uint64_t{1} << 32;

class Receives {
 public:
  // `owner`: the protection domain, or the Linux host.
  template <class Owner>
  void make(Owner& owner, size_t slots, size_t slot_bytes, Rng& rng) {
    slot_bytes_ = slot_bytes;
    memory.make(owner, slots * slot_bytes, rng, IBV_ACCESS_LOCAL_WRITE);
    for (size_t i = 0; i < slots; ++i) free_.push_back(i);
  }
  // Creates a shared receive queue that uses the memory.
  void share(ProtectionDomain& pd, uint32_t max_wr) {
    ibv_srq_init_attr init{};
    init.attr.max_wr = max_wr;
    init.attr.max_sge = kPieces;
    srq = must(pd.create_srq(&init));
  }

  // Posts all free slots, or with `late` a random part of them.
  template <class Queue>
  void refill(Queue* qp, Rng& rng, bool late, Verifier& verifier) {
    while (!free_.empty() && (!late || rng.chance(0.3))) {
      const size_t slot = free_.front();
      ibv_sge list[kPieces];
      ibv_recv_wr wr{};
      wr.wr_id = next_id_;
      wr.sg_list = list;
      wr.num_sge = memory.pieces(rng, slot * slot_bytes_, slot_bytes_, kPieces, list);
      ibv_recv_wr* bad = nullptr;
      const int code = srq != nullptr ? srq->post_recv(&wr, &bad) : qp->post_recv(&wr, &bad);
      if (code != 0) {
        verifier.fail("post_recv gave " + std::to_string(code));
        return;
      }
      free_.pop_front();
      posted_.emplace_back(next_id_++, slot);
    }
  }

  // Returns the slot of a completed receive. A receive queue of one queue pair must complete in the order of posting.
  std::optional<size_t> complete(uint64_t wr_id, Verifier& verifier) {
    for (auto at = posted_.begin(); at != posted_.end(); ++at) {
      if (at->first != wr_id) {
        if (srq == nullptr) break;
        continue;
      }
      const size_t slot = at->second;
      posted_.erase(at);
      return slot;
    }
    verifier.fail("receive " + std::to_string(wr_id - kFirstReceiveId) + " completed out of order or twice");
    return std::nullopt;
  }
  void give_back(size_t slot) { free_.push_back(slot); }
  [[nodiscard]] const uint8_t* at(size_t slot) const { return memory.data() + slot * slot_bytes_; }
  [[nodiscard]] bool none_posted() const { return posted_.empty(); }
  [[nodiscard]] bool all_posted() const { return free_.empty(); }
  // The queue pair was reset or destroyed.
  void forget_posted() {
    for (; !posted_.empty(); posted_.pop_front()) free_.push_back(posted_.front().second);
  }

  Arena memory;
  std::unique_ptr<SharedReceiveQueue> srq;

 private:
  static constexpr int kPieces = 3;
  size_t slot_bytes_ = 0;
  std::deque<size_t> free_;
  std::deque<std::pair<uint64_t, size_t>> posted_;  // wr_id and slot, the oldest first
  uint64_t next_id_ = kFirstReceiveId;
};

}  // namespace roci::test
