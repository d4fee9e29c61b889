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
  explicit GrowingRing(size_t capacity = 64)
      : slots_(std::bit_ceil(capacity < 2 ? size_t{2} : capacity)), mask_(slots_.size() - 1) {}

  [[nodiscard]] bool empty() const { return head_ == tail_; }
  [[nodiscard]] size_t size() const { return tail_ - head_; }
  // Not on an empty ring.
  [[nodiscard]] T& front() { return slots_[head_ & mask_]; }
  [[nodiscard]] const T& front() const { return slots_[head_ & mask_]; }
  [[nodiscard]] const T& back() const { return slots_[(tail_ - 1) & mask_]; }

  // The i-th from the front; i < size().
  [[nodiscard]] const T& operator[](size_t i) const { return slots_[(head_ + i) & mask_]; }

  void push(T value) { add() = std::move(value); }
  // One more at the back, for the caller to say what: it has what was there before. For a T of several small fields, which
  // a processor that has just stored them one by one could not copy at once without waiting.
  T& add() {
    if (size() > mask_) grow();
    return slots_[tail_++ & mask_];
  }
  T pop() { return std::move(slots_[head_++ & mask_]); }
  // The same for a T that need not be moved out: it stays where it is until something is added.
  const T& drop_front() { return slots_[head_++ & mask_]; }

 private:
  void grow() {
    std::vector<T> bigger(slots_.size() * 2);
    const size_t count = size();
    for (size_t i = 0; i < count; ++i) bigger[i] = std::move(slots_[(head_ + i) & mask_]);
    slots_ = std::move(bigger);
    mask_ = slots_.size() - 1;
    head_ = 0;
    tail_ = count;
  }

  std::vector<T> slots_;
  size_t mask_;
  size_t head_ = 0, tail_ = 0;  // count up for ever; the low bits index
};

}  // namespace roci
