// Queues of asynchronous events that the application has not fetched, with a file descriptor to wait on.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "base/os/event_descriptor.hpp"
#include "base/os/spinlock.hpp"
#include "base/result.hpp"
#include "transport/event_sink.hpp"

namespace roci {

// Queue of one user's events. Any thread. An event that is queued already is not queued again. When the queue is full,
// the new event is lost, since the older ones are closer to the cause.
class EventQueue final : public EventSink {
 public:
  static constexpr uint32_t kCapacity = 1024;

  // Fails when eventfd(2) fails.
  static Result<std::shared_ptr<EventQueue>> create();
  ~EventQueue() override;

  bool raise(const AsyncEvent& event) override;
  // Returns the oldest event; nullopt when the queue is empty.
  std::optional<AsyncEvent> take();
  // Called when the object is destroyed. Removes its events.
  void remove(EventSource source, uint32_t number);
  // For poll(2): readable while events are queued. Callers must not read it.
  [[nodiscard]] int fd() const { return fd_; }
  // For threads that block until an event is queued.
  [[nodiscard]] BlockedThreads& blocked() { return blocked_; }

 private:
  explicit EventQueue(int fd) : fd_(fd) {}
  // Only after an event has been queued.
  [[nodiscard]] AsyncEvent& at(uint32_t i) { return events_[(first_ + i) % kCapacity]; }
  void set_readable(bool readable) const;

  const int fd_;
  BlockedThreads blocked_;
  Spinlock lock_;
  // kCapacity. Null before the first event, since most devices have none.
  std::unique_ptr<AsyncEvent[]> events_;
  uint32_t first_ = 0;
  uint32_t count_ = 0;
};

// Routes each event of a host to the queue of the user that created the object. Events of the port go to all users. Any
// thread.
class EventRouter final : public EventSink {
 public:
  // `first`: queue of the first user. It gets all events without an assignment.
  explicit EventRouter(std::shared_ptr<EventQueue> first) : first_(std::move(first)) {}

  bool raise(const AsyncEvent& event) override;
  [[nodiscard]] const std::shared_ptr<EventQueue>& first() const { return first_; }
  // Adds a user. Events are routed to it as long as its queue exists.
  Result<std::shared_ptr<EventQueue>> add_user();
  void assign(EventSource source, uint32_t number, const std::shared_ptr<EventQueue>& queue);
  // Called when the object is destroyed. Removes its events and its assignment.
  void remove(EventSource source, uint32_t number);

 private:
  std::shared_ptr<EventQueue> queue_of(EventSource source, uint32_t number);
  const std::shared_ptr<EventQueue> first_;
  std::mutex mutex_;
  std::vector<std::weak_ptr<EventQueue>> others_;
  std::map<std::pair<EventSource, uint32_t>, std::shared_ptr<EventQueue>> assigned_;
};

}  // namespace roci
