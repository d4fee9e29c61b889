// A worker's buffers for frames to come, taken from the pool many at a time: other cores had them last, and what they
// left in their caches comes here while the first of them is being filled.
#pragma once

#include <rte_mbuf.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "port/eal.hpp"

namespace roci {

class TxBuffers {
 public:
  explicit TxBuffers(std::shared_ptr<MbufPool> pool) : pool_(std::move(pool)) {}
  ~TxBuffers() {
    for (; first_ != end_; ++first_) rte_mempool_put(pool_->get(), at(first_));
  }
  TxBuffers(const TxBuffers&) = delete;
  TxBuffers& operator=(const TxBuffers&) = delete;

  // An empty buffer; null when the pool has none.
  rte_mbuf* take() {
    if (held() <= kAhead) refill();
    if (first_ == end_) return nullptr;
    rte_mbuf* frame = at(first_++);
    fetch_ahead();
    begin_frame(*frame);
    return frame;
  }
  [[nodiscard]] rte_mempool* pool() const { return pool_->get(); }
  // Taken from the pool and not used yet.
  [[nodiscard]] uint32_t held() const { return end_ - first_; }

 private:
  static constexpr uint32_t kAtOnce = 32;
  static constexpr uint32_t kAhead = 8;
  static constexpr uint32_t kSlots = 64;  // a power of two with room for kAhead and kAtOnce
  static_assert(kAhead + kAtOnce <= kSlots);

  [[nodiscard]] rte_mbuf*& at(uint32_t number) { return slots_[number & (kSlots - 1)]; }

  // To be written: another core had the line. Compilers take PREFETCHW for newer than the processors we build for, but
  // all that run 64-bit programs have it, or do nothing.
  static void fetch_to_write(const void* line) {
    asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(line)));
  }
  // As rte_pktmbuf_reset(), but only in the first line of what describes the buffer. A buffer in a pool has no next one,
  // and who frees it only reads the second line, which so stays in both cores' caches.
  static void begin_frame(rte_mbuf& frame) {
    frame.pkt_len = 0;
    frame.data_len = 0;
    frame.data_off = RTE_PKTMBUF_HEADROOM;
    frame.ol_flags = 0;
    frame.packet_type = 0;
    frame.vlan_tci = frame.vlan_tci_outer = 0;
    frame.port = RTE_MBUF_PORT_INVALID;
    __rte_mbuf_sanity_check(&frame, 1);
  }
  // What describes a buffer, and as much of it as headers and a short message take.
  void fetch_ahead() {
    if (held() < kAhead) return;
    const auto* frame = reinterpret_cast<const char*>(at(first_ + kAhead - 1));
    const auto* bytes = static_cast<const char*>(rte_mbuf_buf_addr(at(first_ + kAhead - 1), pool_->get())) +
                        RTE_PKTMBUF_HEADROOM;
    fetch_to_write(frame);
    for (size_t line = 0; line < 3; ++line) fetch_to_write(bytes + line * RTE_CACHE_LINE_SIZE);
  }
  void refill() {
    std::array<void*, kAtOnce> taken;
    uint32_t count = kAtOnce;
    if (rte_mempool_get_bulk(pool_->get(), taken.data(), count) != 0) {
      if (held() > 0) return;
      count = rte_mempool_get(pool_->get(), taken.data()) == 0 ? 1 : 0;
    }
    // The oldest first: large messages were 4 % slower the other way round.
    while (count > 0) at(end_++) = static_cast<rte_mbuf*>(taken[--count]);
  }

  std::shared_ptr<MbufPool> pool_;
  std::array<rte_mbuf*, kSlots> slots_{};
  uint32_t first_ = 0, end_ = 0;  // number slots and wrap
};

}  // namespace roci
