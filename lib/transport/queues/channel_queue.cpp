#include "transport/queues/channel_queue.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <string>

namespace roci {

Result<std::shared_ptr<ChannelQueue>> ChannelQueue::create() {
  // Blocking by default: an application that does not wait for events sets O_NONBLOCK itself.
  const int fd = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);
  if (fd < 0) return fail(std::string("completion channel: eventfd failed: ") + std::strerror(errno), errno);
  return std::shared_ptr<ChannelQueue>(new ChannelQueue(fd));
}

ChannelQueue::~ChannelQueue() { close(fd_); }

void ChannelQueue::append(ChannelMember& member) {
  member.next = nullptr;
  (last_ == nullptr ? first_ : last_->next) = &member;
  last_ = &member;
}

void ChannelQueue::count_down() const {
  // Does not block: the counter equals the number of pending events, and the caller has one.
  read_eventfd(fd_);
}

void ChannelQueue::raise(ChannelMember& member) {
  {
    const std::scoped_lock guard(lock_);
    if (member.waiting++ == 0) append(member);
    add_to_eventfd(fd_);
  }
  blocked_.wake();
}

std::optional<EventObject> ChannelQueue::take() {
  const std::scoped_lock guard(lock_);
  if (first_ == nullptr) return std::nullopt;
  ChannelMember& member = *first_;
  first_ = member.next;
  if (first_ == nullptr) last_ = nullptr;
  ++member.unacknowledged_events;
  if (--member.waiting > 0) append(member);
  count_down();
  return member.object;
}

void ChannelQueue::leave(ChannelMember& member) {
  const std::scoped_lock guard(lock_);
  users_.fetch_sub(1, std::memory_order_relaxed);
  if (member.waiting == 0) return;
  ChannelMember* previous = nullptr;
  for (ChannelMember* at = first_; at != &member; at = at->next) previous = at;
  (previous == nullptr ? first_ : previous->next) = member.next;
  if (last_ == &member) last_ = previous;
  for (; member.waiting > 0; --member.waiting) count_down();
}

void ChannelQueue::acknowledge(ChannelMember& member, uint32_t count) {
  const std::scoped_lock guard(lock_);
  member.unacknowledged_events -= std::min(count, member.unacknowledged_events);
}

uint32_t ChannelQueue::unacknowledged(const ChannelMember& member) {
  const std::scoped_lock guard(lock_);
  return member.unacknowledged_events;
}

}  // namespace roci
