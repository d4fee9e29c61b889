// The asynchronous events of a device that nobody has fetched yet, behind a file descriptor to wait for them.
#pragma once

#include <array>
#include <memory>
#include <optional>

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
  static Result<std::unique_ptr<EventQueue>> create();
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

}  // namespace roci
