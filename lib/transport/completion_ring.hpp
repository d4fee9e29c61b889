// A completion queue: a ring of ibv_wc that workers fill and application threads empty.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>
#include <vector>

#include "base/spinlock.hpp"

namespace roci {

class CompletionRing {
 public:
  // `first`: where the free-running indices begin, for tests of their wrap-around.
  explicit CompletionRing(uint32_t capacity, uint32_t first = 0);
  ~CompletionRing();
  CompletionRing(const CompletionRing&) = delete;
  CompletionRing& operator=(const CompletionRing&) = delete;

  [[nodiscard]] uint32_t capacity() const { return capacity_; }

  // The worker's side. False when the ring is full: the queue is then in error for good and loses this completion
  // (IBTA 11.6.3.1), since overwriting or waiting would both be worse.
  bool push(const ibv_wc& completion, bool solicited);

  // The application's side: up to `count` completions; -1 when the queue is in error and empty.
  int poll(int count, ibv_wc* out);
  [[nodiscard]] bool empty() const {
    return head_.load(std::memory_order_relaxed) == tail_.load(std::memory_order_acquire);
  }

  // One-shot notification through an eventfd.
  void request_notify(bool solicited_only);
  int event_fd();
  // Takes out what still waits for a queue pair that is going away (IBTA 11.2.5.4 lets them disappear).
  void forget(uint32_t qp_num);

 private:
  enum class Armed : uint8_t { kNo, kSolicited, kAny };
  void notify();

  [[nodiscard]] ibv_wc& at(uint32_t index) { return entries_[index & mask_]; }

  uint32_t capacity_;
  // A power of two, so that slots follow each other where the indices wrap at 2^32.
  uint32_t mask_;
  std::vector<ibv_wc> entries_;
  Spinlock producers_;
  Spinlock consumers_;
  std::atomic<bool> overflowed_{false};
  std::atomic<Armed> armed_{Armed::kNo};
  std::atomic<int> event_fd_{-1};
  alignas(64) std::atomic<uint32_t> head_;  // next to poll
  alignas(64) std::atomic<uint32_t> tail_;  // next to fill
};

}  // namespace roci
