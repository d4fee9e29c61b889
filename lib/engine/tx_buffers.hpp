// A worker's buffers for frames to come, taken from the pool many at a time: other cores had them last, and what they
// left in their caches comes here while the first of them is being filled.
#pragma once

#include <rte_mbuf.h>

#include <array>
#include <cstdint>
#include <memory>
#include <utility>

#include "port/eal.hpp"

namespace roci {

class TxBuffers {
 public:
  explicit TxBuffers(std::shared_ptr<MbufPool> pool) : pool_(std::move(pool)) {}
  ~TxBuffers() { rte_pktmbuf_free_bulk(held_.data(), count_); }
  TxBuffers(const TxBuffers&) = delete;
  TxBuffers& operator=(const TxBuffers&) = delete;

  // An empty buffer; null when the pool has none.
  rte_mbuf* take() {
    if (count_ == 0 && !refill()) return nullptr;
    rte_mbuf* frame = held_[--count_];
    if (count_ >= kAhead) {
      const auto* bytes = rte_pktmbuf_mtod(held_[count_ - kAhead], uint8_t*);
      __builtin_prefetch(bytes, 1);
      __builtin_prefetch(bytes + RTE_CACHE_LINE_SIZE, 1);
    }
    return frame;
  }
  [[nodiscard]] rte_mempool* pool() const { return pool_->get(); }
  // Taken from the pool and not used yet.
  [[nodiscard]] uint32_t held() const { return count_; }

 private:
  static constexpr uint32_t kAtOnce = 32;
  static constexpr uint32_t kAhead = 2;

  bool refill() {
    if (rte_pktmbuf_alloc_bulk(pool_->get(), held_.data(), kAtOnce) == 0) {
      count_ = kAtOnce;
    } else if (rte_mbuf* last = rte_pktmbuf_alloc(pool_->get()); last != nullptr) {
      held_[count_++] = last;
    }
    return count_ > 0;
  }

  std::shared_ptr<MbufPool> pool_;
  std::array<rte_mbuf*, kAtOnce> held_{};
  uint32_t count_ = 0;
};

}  // namespace roci
