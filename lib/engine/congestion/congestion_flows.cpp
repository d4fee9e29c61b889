#include "engine/congestion/congestion_flows.hpp"

#include "wire/headers/flow_hasher.hpp"

namespace roci {

CongestionFlows::CongestionFlows(bool enabled, uint32_t first, uint64_t salt)
    : salt_(salt),
      buckets_(enabled ? 65536 : 0),
      next_fresh_(first % kMax),
      fresh_left_(enabled ? kMax : 0) {}

CongestionFlows::~CongestionFlows() {
  for (auto& chunk : chunks_) delete chunk.load(std::memory_order_relaxed);
}

uint16_t CongestionFlows::take_number() {
  if (fresh_left_ > 0) {
    --fresh_left_;
    const auto number = static_cast<uint16_t>(next_fresh_ + 1);  // 0: no flow (802.1Q 33.2)
    next_fresh_ = (next_fresh_ + 1) % kMax;
    return number;
  }
  if (free_.empty()) return 0;
  const uint16_t number = free_.front();
  free_.pop_front();
  return number;
}

uint16_t CongestionFlows::enter(Qpn qp, const SentFlow* sent) {
  const std::scoped_lock guard(changes_);
  const uint16_t flow = take_number();
  if (flow == 0) return 0;
  auto& chunk = chunks_[flow / kChunk];
  if (chunk.load(std::memory_order_relaxed) == nullptr) chunk.store(new Chunk, std::memory_order_release);
  Slot& slot = *this->slot(flow);
  slot.requests = slot.responses = CongestionRecord();
  if (sent != nullptr) link(flow, slot, hash_of(*sent));
  slot.qp.store(qp.value(), std::memory_order_release);
  return flow;
}

void CongestionFlows::leave(uint16_t flow) {
  const std::scoped_lock guard(changes_);
  Slot& slot = *this->slot(flow);
  slot.qp.store(0, std::memory_order_release);
  if (slot.in_bucket) unlink(flow, slot);
  free_.push_back(flow);
}

void CongestionFlows::link(uint16_t flow, Slot& of, uint64_t hash) {
  of.hash.store(hash, std::memory_order_relaxed);
  // Release: pairs with the load in find(), which may be at this slot since its previous use, and continues to a flow
  // whose chunk must then be visible.
  of.next.store(bucket(hash).load(std::memory_order_relaxed), std::memory_order_release);
  of.in_bucket = true;
  bucket(hash).store(flow, std::memory_order_release);
}

// A concurrent find() at this entry continues from it. At worst
// it does not find a flow that has moved to another bucket.
void CongestionFlows::unlink(uint16_t flow, Slot& of) {
  std::atomic<uint16_t>* at = &bucket(of.hash.load(std::memory_order_relaxed));
  while (at->load(std::memory_order_relaxed) != flow) at = &slot(at->load(std::memory_order_relaxed))->next;
  at->store(of.next.load(std::memory_order_relaxed), std::memory_order_release);
  of.in_bucket = false;
}

CongestionFlows::Slot* CongestionFlows::slot(uint16_t flow) const {
  Chunk* chunk = chunks_[flow / kChunk].load(std::memory_order_acquire);
  return chunk == nullptr ? nullptr : &(*chunk)[flow % kChunk];
}

uint64_t CongestionFlows::hash_of(const SentFlow& sent) const {
  FlowHasher mix{salt_};
  mix.add(sent.source.bytes);
  mix.add(sent.destination.bytes);
  mix.add(uint64_t{sent.remote_qp.value()} << 16 | sent.udp_source_port);
  return mix.value() * 0x9e3779b97f4a7c15;
}

std::optional<Qpn> CongestionFlows::find(uint16_t flow) const {
  const Slot* slot = flow == 0 ? nullptr : this->slot(flow);
  const uint32_t qp = slot == nullptr ? 0 : slot->qp.load(std::memory_order_acquire);
  return qp == 0 ? std::nullopt : std::optional(Qpn{qp});
}

std::optional<Qpn> CongestionFlows::find(const SentFlow& sent) const {
  if (!enabled()) return std::nullopt;
  const uint64_t hash = hash_of(sent);
  uint16_t flow = bucket(hash).load(std::memory_order_acquire);
  for (uint32_t i = 0; flow != 0 && i < kMaxChain; ++i) {
    const Slot& slot = *this->slot(flow);
    if (slot.hash.load(std::memory_order_relaxed) == hash) return find(flow);
    flow = slot.next.load(std::memory_order_acquire);
  }
  return std::nullopt;
}

uint32_t CongestionFlows::size() const {
  const std::scoped_lock guard(changes_);
  return enabled() ? kMax - fresh_left_ - static_cast<uint32_t>(free_.size()) : 0;
}

}  // namespace roci
