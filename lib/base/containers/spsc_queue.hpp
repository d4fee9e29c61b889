// Unbounded single-producer single-consumer FIFO queue. Memory grows with the number of elements, in chunks.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <memory>
#include <utility>

namespace roci {

// T is cheap to move and default-constructible. One producer and one consumer at a time. Each chunk has twice the size
// of the one before, up to kLargest elements, so a queue with few elements is small.
template <class T, size_t kLargest = 256>
class SpscQueue {
 public:
  SpscQueue() : first_(new Chunk(std::min(kSmallest, kLargest))), last_(first_) {}
  ~SpscQueue() {
    while (first_ != nullptr) delete std::exchange(first_, first_->next.load(std::memory_order_relaxed));
  }
  SpscQueue(const SpscQueue&) = delete;
  SpscQueue& operator=(const SpscQueue&) = delete;

  // Producer.
  void push(T value) {
    if (filled_ == last_->size) {
      auto* const chunk = new Chunk(std::min(last_->size * 2, kLargest));
      last_->next.store(chunk, std::memory_order_release);
      last_ = chunk;
      filled_ = 0;
    }
    last_->slots[filled_++] = std::move(value);
    last_->filled.store(filled_, std::memory_order_release);
  }

  // Consumer: the oldest element, or null if the queue is empty. It is valid until pop().
  T* front() {
    if (taken_ == first_->size) {
      Chunk* const next = first_->next.load(std::memory_order_acquire);
      if (next == nullptr) return nullptr;
      delete std::exchange(first_, next);
      taken_ = 0;
    }
    return taken_ < first_->filled.load(std::memory_order_acquire) ? &first_->slots[taken_] : nullptr;
  }
  void pop() { ++taken_; }

 private:
  static constexpr size_t kSmallest = 16;
  struct Chunk {
    explicit Chunk(size_t elements) : size(elements), slots(std::make_unique<T[]>(elements)) {}
    const size_t size;
    const std::unique_ptr<T[]> slots;
    std::atomic<size_t> filled{0};
    std::atomic<Chunk*> next{nullptr};
  };

  alignas(64) Chunk* first_;
  size_t taken_ = 0;
  alignas(64) Chunk* last_;
  size_t filled_ = 0;
};

}  // namespace roci
