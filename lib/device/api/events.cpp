#include "device/api/events.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cstring>
#include <mutex>
#include <new>

namespace roci {

Result<std::shared_ptr<EventQueue>> EventQueue::create() {
  // Blocking by default: an application that does not wait for events sets O_NONBLOCK itself.
  const int fd = eventfd(0, EFD_CLOEXEC);
  if (fd < 0) return fail(std::string("asynchronous events: eventfd failed: ") + std::strerror(errno), errno);
  return std::shared_ptr<EventQueue>(new EventQueue(fd));
}

EventQueue::~EventQueue() { close(fd_); }

void EventQueue::set_readable(bool readable) const {
  // Neither call blocks or fails: the counter is 0 before the write and 1 before the read.
  readable ? add_to_eventfd(fd_) : read_eventfd(fd_);
}

bool EventQueue::raise(const AsyncEvent& event) {
  const std::scoped_lock guard(lock_);
  for (uint32_t i = 0; i < count_; ++i) {
    const AsyncEvent& waiting = at(i);
    if (waiting.type == event.type && waiting.object.source == event.object.source &&
        waiting.object.number == event.object.number) {
      return true;
    }
  }
  if (count_ == kCapacity) return false;
  if (events_ == nullptr) events_.reset(new (std::nothrow) AsyncEvent[kCapacity]);
  if (events_ == nullptr) return false;
  at(count_++) = event;
  if (count_ == 1) set_readable(true);
  blocked_.wake();
  return true;
}

std::optional<AsyncEvent> EventQueue::take() {
  const std::scoped_lock guard(lock_);
  if (count_ == 0) return std::nullopt;
  const AsyncEvent event = at(0);
  first_ = (first_ + 1) % kCapacity;
  if (--count_ == 0) set_readable(false);
  return event;
}

void EventQueue::remove(EventSource source, uint32_t number) {
  const std::scoped_lock guard(lock_);
  uint32_t kept = 0;
  for (uint32_t i = 0; i < count_; ++i) {
    const AsyncEvent event = at(i);
    if (event.object.source != source || event.object.number != number) at(kept++) = event;
  }
  if (kept == 0 && count_ > 0) set_readable(false);
  count_ = kept;
}

std::shared_ptr<EventQueue> EventRouter::queue_of(EventSource source, uint32_t number) {
  const std::scoped_lock guard(mutex_);
  const auto found = assigned_.find({source, number});
  return found == assigned_.end() ? first_ : found->second;
}

bool EventRouter::raise(const AsyncEvent& event) {
  if (event.object.source != EventSource::kPort)
    return queue_of(event.object.source, event.object.number)->raise(event);
  bool all = first_->raise(event);
  const std::scoped_lock guard(mutex_);
  for (const auto& other : others_) {
    if (const auto queue = other.lock()) all = queue->raise(event) && all;
  }
  return all;
}

Result<std::shared_ptr<EventQueue>> EventRouter::add_user() {
  auto queue = EventQueue::create();
  if (!queue) return queue;
  const std::scoped_lock guard(mutex_);
  std::erase_if(others_, [](const auto& other) { return other.expired(); });
  others_.push_back(*queue);
  return queue;
}

void EventRouter::assign(EventSource source, uint32_t number, const std::shared_ptr<EventQueue>& queue) {
  if (queue == first_) return;
  const std::scoped_lock guard(mutex_);
  assigned_[{source, number}] = queue;
}

void EventRouter::remove(EventSource source, uint32_t number) {
  queue_of(source, number)->remove(source, number);
  const std::scoped_lock guard(mutex_);
  assigned_.erase({source, number});
}

}  // namespace roci
