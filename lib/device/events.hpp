// The asynchronous events of a device that nobody has fetched yet, behind a file descriptor to wait for them.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "base/spinlock.hpp"
#include "transport/event_sink.hpp"

namespace roci {

// Any thread. An event that waits already is not queued again: it would tell nothing new. A full queue loses the new
// event, since the older ones are what led to it.
class EventQueue final : public EventSink {
 public:
  static constexpr uint32_t kCapacity = 1024;

  // Fails when the system has no eventfd to give.
  static Result<std::shared_ptr<EventQueue>> create();
  ~EventQueue() override;

  bool raise(const AsyncEvent& event) override;
  // The oldest event; none when none waits.
  std::optional<AsyncEvent> take();
  // The object is going away, and what waits about it with it.
  void forget(EventSource source, uint32_t number);
  // Readable while events wait, not to be read.
  [[nodiscard]] int fd() const { return fd_; }

 private:
  explicit EventQueue(int fd) : fd_(fd) {}
  [[nodiscard]] AsyncEvent& at(uint32_t i) { return events_[(first_ + i) % kCapacity]; }
  void set_readable(bool readable) const;

  const int fd_;
  Spinlock lock_;
  std::array<AsyncEvent, kCapacity> events_{};
  uint32_t first_ = 0;
  uint32_t count_ = 0;
};

// Brings each event of a host to who made the object that it is about. Those of the port are for all. Any thread.
class EventRouter final : public EventSink {
 public:
  // The queue of the first user, which gets what has not been assigned to another.
  explicit EventRouter(std::shared_ptr<EventQueue> first) : first_(std::move(first)) {}

  bool raise(const AsyncEvent& event) override;
  [[nodiscard]] const std::shared_ptr<EventQueue>& first() const { return first_; }
  // Another user, for as long as the queue lives.
  Result<std::shared_ptr<EventQueue>> add_user();
  void assign(EventSource source, uint32_t number, const std::shared_ptr<EventQueue>& queue);
  // The object is going away, and what waits about it with it.
  void forget(EventSource source, uint32_t number);

 private:
  std::shared_ptr<EventQueue> queue_of(EventSource source, uint32_t number);
  const std::shared_ptr<EventQueue> first_;
  std::mutex mutex_;
  std::vector<std::weak_ptr<EventQueue>> others_;
  std::map<std::pair<EventSource, uint32_t>, std::shared_ptr<EventQueue>> assigned_;
};

}  // namespace roci
