// Bounded single-producer single-consumer ring with bursts, through which workers pass frames to each other. DPDK's
// rings are not used because ThreadSanitizer does not see their memory order.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace roci {

// T is trivially copyable. One producer and one consumer at a time. A thread that takes over either role must have
// synchronized with the previous one (a worker's token does). empty() and size() may be called by any thread.
template <class T>
class SpscRing {
 public:
  // `capacity` elements, rounded up to a power of two.
  explicit SpscRing(uint32_t capacity) : slots_(std::bit_ceil(std::max(capacity, 2U))) {}

  [[nodiscard]] uint32_t capacity() const { return static_cast<uint32_t>(slots_.size()); }
  [[nodiscard]] bool empty() const { return size() == 0; }
  // For the producer and the consumer. Other threads get an estimate, which may exceed the capacity.
  [[nodiscard]] uint32_t size() const {
    // The head is loaded first: pairs with the store in pop(), so the tail is not older than it, and the difference is
    // not negative.
    const uint32_t head = head_.load(std::memory_order_acquire);
    return tail_.load(std::memory_order_acquire) - head;
  }

  // Producer: pushes as many elements of `in` as fit; returns their number.
  uint32_t push(std::span<const T> in) {
    const uint32_t tail = tail_.load(std::memory_order_relaxed);
    if (capacity() - (tail - head_seen_) < in.size()) head_seen_ = head_.load(std::memory_order_acquire);
    const auto count = static_cast<uint32_t>(std::min<size_t>(in.size(), capacity() - (tail - head_seen_)));
    for (uint32_t i = 0; i < count; ++i) slots_[(tail + i) & mask()] = in[i];
    if (count > 0) tail_.store(tail + count, std::memory_order_release);
    return count;
  }

  // Consumer: pops up to out.size() of the oldest elements; returns their number.
  uint32_t pop(std::span<T> out) {
    const uint32_t head = head_.load(std::memory_order_relaxed);
    if (tail_seen_ - head < out.size()) tail_seen_ = tail_.load(std::memory_order_acquire);
    const auto count = static_cast<uint32_t>(std::min<size_t>(out.size(), tail_seen_ - head));
    for (uint32_t i = 0; i < count; ++i) out[i] = slots_[(head + i) & mask()];
    if (count > 0) head_.store(head + count, std::memory_order_release);
    return count;
  }

 private:
  [[nodiscard]] uint32_t mask() const { return capacity() - 1; }

  // A cache line per thread: its own index, which is never reset, and a cached copy of the other index.
  std::vector<T> slots_;
  alignas(64) std::atomic<uint32_t> tail_{0};
  uint32_t head_seen_ = 0;
  alignas(64) std::atomic<uint32_t> head_{0};
  uint32_t tail_seen_ = 0;
};

}  // namespace roci
