// Event queue of a completion channel: the completion queues with pending events, and a file descriptor to wait on.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

#include "base/os/event_descriptor.hpp"
#include "base/os/spinlock.hpp"
#include "base/result.hpp"
#include "roci/events.hpp"

namespace roci {

// State of one completion queue in its channel. All members are protected by the channel's lock.
struct ChannelMember {
  EventObject object;
  ChannelMember* next = nullptr;
  uint32_t waiting = 0;                // events that take() has not returned
  uint32_t unacknowledged_events = 0;  // events that take() has returned and that are not acknowledged
};

// Queue of completion queues with pending events. Any thread may call it. An armed completion queue raises one event,
// so the lock and the system call of raise() are not per completion.
class ChannelQueue {
 public:
  // Fails when eventfd(2) fails.
  static Result<std::shared_ptr<ChannelQueue>> create();
  ~ChannelQueue();
  ChannelQueue(const ChannelQueue&) = delete;
  ChannelQueue& operator=(const ChannelQueue&) = delete;

  [[nodiscard]] int fd() const { return fd_; }
  // For threads that block until an event is pending.
  [[nodiscard]] BlockedThreads& blocked() { return blocked_; }
  void join() { users_.fetch_add(1, std::memory_order_relaxed); }
  // Discards the pending events of `member`.
  void leave(ChannelMember& member);
  [[nodiscard]] uint32_t users() const { return users_.load(std::memory_order_relaxed); }

  void raise(ChannelMember& member);
  std::optional<EventObject> take();
  void acknowledge(ChannelMember& member, uint32_t count);
  [[nodiscard]] uint32_t unacknowledged(const ChannelMember& member);

 private:
  explicit ChannelQueue(int fd) : fd_(fd) {}
  void append(ChannelMember& member);
  void count_down() const;

  const int fd_;  // an eventfd that counts the pending events
  std::atomic<uint32_t> users_{0};
  BlockedThreads blocked_;
  Spinlock lock_;
  ChannelMember* first_ = nullptr;  // members with pending events, in the order in which take() serves them
  ChannelMember* last_ = nullptr;
};

}  // namespace roci
