#include "transport/completion_ring.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <mutex>

namespace roci {

CompletionRing::CompletionRing(uint32_t capacity, uint32_t first, const EventObject& object)
    : object_(object), capacity_(capacity), entries_(std::bit_ceil(capacity)), head_(first), tail_(first) {}

CompletionRing::~CompletionRing() {
  const int fd = event_fd_.load();
  if (fd >= 0) close(fd);
}

bool CompletionRing::push(const ibv_wc& completion, bool solicited) {
  {
    const std::scoped_lock guard(producers_);
    const uint32_t tail = tail_.load(std::memory_order_relaxed);
    if (tail - head_.load(std::memory_order_acquire) >= capacity()) {
      overflowed_.store(true, std::memory_order_relaxed);
      return false;
    }
    at(tail) = completion;
    // Ordered before the look at armed_: either we see the request, or its maker sees this completion.
    tail_.store(tail + 1, std::memory_order_seq_cst);
  }
  const Armed armed = armed_.load(std::memory_order_seq_cst);
  if (armed == Armed::kAny ||
      (armed == Armed::kSolicited && (solicited || completion.status != IBV_WC_SUCCESS))) {
    notify();
  }
  return true;
}

int CompletionRing::poll(int count, ibv_wc* out) {
  if (empty()) return overflowed_.load(std::memory_order_relaxed) ? -1 : 0;
  const std::scoped_lock guard(consumers_);
  const uint32_t head = head_.load(std::memory_order_relaxed);
  const uint32_t waiting = tail_.load(std::memory_order_acquire) - head;
  const uint32_t take = count < 0 ? 0 : std::min(static_cast<uint32_t>(count), waiting);
  for (uint32_t i = 0; i < take; ++i) out[i] = at(head + i);
  head_.store(head + take, std::memory_order_release);
  return static_cast<int>(take);
}

void CompletionRing::request_notify(bool solicited_only) {
  event_fd();  // there must be one to write to
  armed_.store(solicited_only ? Armed::kSolicited : Armed::kAny, std::memory_order_seq_cst);
}

int CompletionRing::event_fd() {
  int fd = event_fd_.load();
  if (fd >= 0) return fd;
  fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  int expected = -1;
  if (fd >= 0 && !event_fd_.compare_exchange_strong(expected, fd)) {
    close(fd);
    fd = expected;
  }
  return fd;
}

void CompletionRing::notify() {
  if (armed_.exchange(Armed::kNo) == Armed::kNo) return;
  const int fd = event_fd_.load();
  const uint64_t one = 1;
  // A full counter (EAGAIN) is readable already, which is all a waiter needs.
  if (fd >= 0 && write(fd, &one, sizeof one) < 0) return;
}

void CompletionRing::forget(uint32_t qp_num) {
  const std::scoped_lock guard(producers_, consumers_);
  const uint32_t head = head_.load(std::memory_order_relaxed);
  const uint32_t tail = tail_.load(std::memory_order_relaxed);
  uint32_t kept = head;
  for (uint32_t i = head; i != tail; ++i) {
    const ibv_wc& wc = at(i);
    if (wc.qp_num != qp_num) at(kept++) = wc;
  }
  tail_.store(kept, std::memory_order_release);
}

}  // namespace roci
