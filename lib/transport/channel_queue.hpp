// The events of a completion channel: which completion queues have something, behind a file descriptor.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

#include "base/result.hpp"
#include "base/spinlock.hpp"
#include "roci/events.hpp"

namespace roci {

// The place of one completion queue in its channel. Everything is the channel's, under its lock.
struct ChannelMember {
  EventObject object;
  ChannelMember* next = nullptr;
  uint32_t waiting = 0;    // events not given out
  uint32_t given_out = 0;  // and not acknowledged
};

// Any thread. Raised at most once for each time that a completion queue is armed, so it may lock and call the system.
class ChannelQueue {
 public:
  // Fails when the system has no eventfd to give.
  static Result<std::shared_ptr<ChannelQueue>> create();
  ~ChannelQueue();
  ChannelQueue(const ChannelQueue&) = delete;
  ChannelQueue& operator=(const ChannelQueue&) = delete;

  [[nodiscard]] int fd() const { return fd_; }
  void join() { users_.fetch_add(1, std::memory_order_relaxed); }
  // Takes what waits of it along.
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

  const int fd_;  // an eventfd that counts the events that wait
  std::atomic<uint32_t> users_{0};
  Spinlock lock_;
  ChannelMember* first_ = nullptr;  // members with events, the one whose turn it is first
  ChannelMember* last_ = nullptr;
};

}  // namespace roci
