#include "engine/worker/worker_handoff.hpp"

#include <algorithm>

#include "engine/worker/attached_queue_pair.hpp"

namespace roci {

WorkerHandoff::WorkerHandoff(Handoff& rings, uint32_t index, rte_mempool* pool, Counters& counters)
    : index_(index),
      pool_(pool),
      counters_(counters),
      outgoing_(rings.needs_relay(index) ? &rings.outgoing(index) : nullptr),
      port_state_(rings.port_state(rings.relay_of(index))),
      outboxes_(rings.workers()) {
  for (uint32_t other = 0; other < rings.workers(); ++other) {
    if (other == index) continue;
    inboxes_.push_back(&rings.inbox(other, index));
    outboxes_[other].ring = &rings.inbox(index, other);
    if (rings.needs_relay(other) && rings.relay_of(other) == index)
      relayed_.push_back(&rings.outgoing(other));
  }
}

void WorkerHandoff::copy_to_all(const rte_mbuf* frame) {
  for (uint32_t other = 0; other < outboxes_.size(); ++other) {
    if (other != index_) copy_to(other, frame);
  }
}

void WorkerHandoff::copy_to_owners(const rte_mbuf* frame, std::span<AttachedQueuePair* const> members) {
  uint64_t done = 0;  // bitmap of workers, at most 16
  for (const AttachedQueuePair* qp : members) {
    const uint32_t other = owner_of(qp->core.number());
    if (other == index_ || (done >> other & 1) != 0) continue;
    done |= uint64_t{1} << other;
    copy_to(other, frame);
  }
}

void WorkerHandoff::copy_to(uint32_t worker, const rte_mbuf* frame) {
  if (outboxes_[worker].count == kBurst) deliver_outboxes();
  rte_mbuf* copy = nullptr;
  if (outboxes_[worker].ring->size() < kCopiesBelow) copy = rte_pktmbuf_copy(frame, pool_, 0, UINT32_MAX);
  if (copy != nullptr) {
    pass(worker, copy);
  } else {
    counters_.add(Counter::kRxHandOverFull);
  }
}

void WorkerHandoff::deliver_outboxes() {
  pending_ = false;
  for (Outbox& outbox : outboxes_) {
    if (outbox.count == 0) continue;
    const uint32_t taken = outbox.ring->push({outbox.frames.data(), outbox.count});
    counters_.add(Counter::kRxHandedOver, taken);
    if (taken < outbox.count) {
      counters_.add(Counter::kRxHandOverFull, outbox.count - taken);
      rte_pktmbuf_free_bulk(&outbox.frames[taken], outbox.count - taken);
    }
    outbox.count = 0;
  }
}

bool WorkerHandoff::has_waiting() const {
  const auto waits = [](const FrameRing* ring) { return !ring->empty(); };
  return std::ranges::any_of(inboxes_, waits) || std::ranges::any_of(relayed_, waits);
}

}  // namespace roci
