#include "switch/egress_queue.hpp"

#include <algorithm>
#include <array>

namespace roci {

EgressQueue::~EgressQueue() {
  while (!waiting_.empty()) rte_pktmbuf_free(waiting_.pop().frame);
}

void EgressQueue::push(rte_mbuf* frame, Nanos now) {
  bytes_ += frame->pkt_len;
  waiting_.push({frame, now});
  counters_.queue_bytes.store(bytes_, std::memory_order_relaxed);
  counters_.queue_packets.store(waiting_.size(), std::memory_order_relaxed);
  if (bytes_ > counters_.queue_peak_bytes.load(std::memory_order_relaxed)) {
    counters_.queue_peak_bytes.store(bytes_, std::memory_order_relaxed);
  }
}

bool EgressQueue::drain(Port& port, Nanos now) {
  std::array<rte_mbuf*, kBurst> burst;
  std::array<LineClock, kBurst> line_after;  // each frame of the burst
  std::array<uint32_t, kBurst> size;
  size_t due = 0;
  for (LineClock line = line_; due < std::min(kBurst, waiting_.size()); ++due) {
    const Waiting& next = waiting_[due];
    const Nanos start = std::max({line.free_at(), next.since, now - kLongestCatchUp});
    if (start > now) break;
    size[due] = next.frame->pkt_len;
    line.occupy(start, Bytes{size[due]} + kEthernetLineOverhead);
    line_after[due] = line;
    burst[due] = next.frame;
  }
  if (due == 0) return false;
  const uint16_t taken = port.tx_burst({burst.data(), due}, now);
  if (taken == 0) return false;

  uint64_t bytes = 0;
  for (uint16_t i = 0; i < taken; ++i) {
    bytes += size[i];
    waiting_.pop();
  }
  line_ = line_after[taken - 1U];
  bytes_ -= bytes;
  bump(counters_.tx_packets, taken);
  bump(counters_.tx_bytes, bytes);
  counters_.queue_bytes.store(bytes_, std::memory_order_relaxed);
  counters_.queue_packets.store(waiting_.size(), std::memory_order_relaxed);
  return true;
}

Nanos EgressQueue::next_start() const {
  return waiting_.empty() ? kNever : std::max(line_.free_at(), waiting_.front().since);
}

}  // namespace roci
