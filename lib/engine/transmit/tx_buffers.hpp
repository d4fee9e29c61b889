// Transmit buffers of a worker, allocated from the pool in bulk and ahead of use. Other cores used them last, so their
// cache lines are prefetched while earlier buffers are filled.
#pragma once

#include <rte_mbuf.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "port/dpdk/mbuf_pool.hpp"

namespace roci {

class TxBuffers {
 public:
  explicit TxBuffers(std::shared_ptr<MbufPool> pool) : pool_(std::move(pool)) {}
  ~TxBuffers() {
    for (; first_ != end_; ++first_) rte_mempool_put(pool_->get(), at(first_));
  }
  TxBuffers(const TxBuffers&) = delete;
  TxBuffers& operator=(const TxBuffers&) = delete;

  // Returns an empty buffer; null if the pool is empty.
  rte_mbuf* take() {
    if (held() <= ahead_) refill();
    if (first_ == end_) return nullptr;
    rte_mbuf* frame = at(first_++);
    fetch_ahead();
    begin_frame(*frame);
    return frame;
  }
  [[nodiscard]] rte_mempool* pool() const { return pool_->get(); }
  // Number of allocated buffers that are not used yet.
  [[nodiscard]] uint32_t held() const { return end_ - first_; }

 private:
  static constexpr uint32_t kAtOnce = 32;
  static constexpr uint32_t kAhead = 8;
  static constexpr uint32_t kSlots = 64;  // power of two, at least kAhead + kAtOnce
  static_assert(kAhead + kAtOnce <= kSlots);

  [[nodiscard]] rte_mbuf*& at(uint32_t number) { return slots_[number & (kSlots - 1)]; }

  // Prefetches for writing, because another core had the line. Compilers do not emit PREFETCHW for the x86-64
  // baseline, but every processor executes or ignores it.
  static void fetch_to_write(const void* line) {
#if defined(__x86_64__)
    asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(line)));
#else
    __builtin_prefetch(line, 1);
#endif
  }
  // Like rte_pktmbuf_reset(), but writes only the first cache line of the mbuf. `next` of a buffer in a pool is null,
  // and the freeing core only reads the second line, which therefore stays in the caches of both cores.
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
  // Prefetches the mbuf and the part of its data room that headers and a short message use.
  void fetch_ahead() {
    if (held() < kAhead) return;
    const auto* frame = reinterpret_cast<const char*>(at(first_ + kAhead - 1));
    const auto* bytes = static_cast<const char*>(rte_mbuf_buf_addr(at(first_ + kAhead - 1), pool_->get())) +
                        RTE_PKTMBUF_HEADROOM;
    fetch_to_write(frame);
    for (size_t line = 0; line < 3; ++line) fetch_to_write(bytes + line * RTE_CACHE_LINE_SIZE);
  }
  // The first refill is small, since many hosts of a simulation send a few frames only.
  void refill() {
    std::array<void*, kAtOnce> taken;
    const bool is_first = end_ == 0;
    uint32_t count = is_first ? kAhead : kAtOnce;
    ahead_ = is_first ? 0 : kAhead;
    if (rte_mempool_get_bulk(pool_->get(), taken.data(), count) != 0) {
      if (held() > 0) return;
      count = rte_mempool_get(pool_->get(), taken.data()) == 0 ? 1 : 0;
    }
    // Oldest first: large messages were 4 % slower in the reverse order.
    while (count > 0) at(end_++) = static_cast<rte_mbuf*>(taken[--count]);
  }

  std::shared_ptr<MbufPool> pool_;
  std::array<rte_mbuf*, kSlots> slots_{};
  uint32_t first_ = 0, end_ = 0;  // slot numbers, which wrap
  uint32_t ahead_ = 0;            // number of held buffers at which more are allocated
};

}  // namespace roci
