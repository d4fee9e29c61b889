// FIFO queue in one block of memory that doubles when it is full. It does not allocate after it has reached its maximum
// length.
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
  // The ring must not be empty.
  [[nodiscard]] T& front() { return slots_[head_ & mask_]; }
  [[nodiscard]] const T& front() const { return slots_[head_ & mask_]; }
  [[nodiscard]] const T& back() const { return slots_[(tail_ - 1) & mask_]; }

  // Element i from the front; i < size().
  [[nodiscard]] const T& operator[](size_t i) const { return slots_[(head_ + i) & mask_]; }

  void push(T value) { add() = std::move(value); }
  // Appends an element for the caller to fill; it contains old data. For a T of several small fields: a copy of a T
  // whose fields were just stored one by one stalls the processor (store forwarding).
  T& add() {
    if (size() > mask_) grow();
    return slots_[tail_++ & mask_];
  }
  T pop() { return std::move(slots_[head_++ & mask_]); }
  // As pop(), without moving the element out: the reference is valid until the next element is added.
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
  size_t head_ = 0, tail_ = 0;  // never reset; the low bits are the index
};

}  // namespace roci
