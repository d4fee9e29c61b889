// A first-in first-out queue in one block of memory that doubles when it is full: after it has seen its
// longest queue, it never allocates again.
#pragma once

#include <bit>
#include <cstddef>
#include <utility>
#include <vector>

namespace roci {

// T is cheap to move and default-constructible. Owned by one thread.
template <class T>
class GrowingRing {
 public:
  explicit GrowingRing(size_t capacity = 64) : slots_(std::bit_ceil(capacity < 2 ? size_t{2} : capacity)) {}

  [[nodiscard]] bool empty() const { return head_ == tail_; }
  [[nodiscard]] size_t size() const { return tail_ - head_; }
  // Not on an empty ring.
  [[nodiscard]] T& front() { return slots_[head_ & mask()]; }
  [[nodiscard]] const T& front() const { return slots_[head_ & mask()]; }
  [[nodiscard]] const T& back() const { return slots_[(tail_ - 1) & mask()]; }

  // The i-th from the front; i < size().
  [[nodiscard]] const T& operator[](size_t i) const { return slots_[(head_ + i) & mask()]; }

  void push(T value) {
    if (size() == slots_.size()) grow();
    slots_[tail_++ & mask()] = std::move(value);
  }
  T pop() { return std::move(slots_[head_++ & mask()]); }

 private:
  [[nodiscard]] size_t mask() const { return slots_.size() - 1; }
  void grow() {
    std::vector<T> bigger(slots_.size() * 2);
    const size_t count = size();
    for (size_t i = 0; i < count; ++i) bigger[i] = std::move(slots_[(head_ + i) & mask()]);
    slots_ = std::move(bigger);
    head_ = 0;
    tail_ = count;
  }

  std::vector<T> slots_;
  size_t head_ = 0, tail_ = 0;  // count up for ever; the low bits index
};

}  // namespace roci
