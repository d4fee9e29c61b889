// Completion queues, and channels to sleep on until one of them has something. Made by Device.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <memory>
#include <optional>

#include "roci/events.hpp"
#include "roci/result.hpp"

namespace roci {

class ChannelQueue;
class CompletionRing;
class Host;

// Whether a completion queue keeps the time of each completion.
enum class TimeStamps : uint8_t { kNone, kMonotonic };

// What several completion queues share to wake their program.
class CompletionChannel {
 public:
  ~CompletionChannel();
  CompletionChannel(const CompletionChannel&) = delete;
  CompletionChannel& operator=(const CompletionChannel&) = delete;
  // Readable while events wait, for poll() and its kin; not to be read or closed. O_NONBLOCK on it is the caller's.
  [[nodiscard]] int fd() const;
  // As ibv_get_cq_event without waiting: names the completion queue of the oldest event; none when none waits. The
  // events of a queue disappear with it.
  std::optional<EventObject> get_event();
  // Completion queues that report here.
  [[nodiscard]] uint32_t users() const;

 private:
  friend class Device;
  explicit CompletionChannel(std::shared_ptr<ChannelQueue> queue);
  std::shared_ptr<ChannelQueue> queue_;
};

class CompletionQueue {
 public:
  ~CompletionQueue();
  CompletionQueue(const CompletionQueue&) = delete;
  CompletionQueue& operator=(const CompletionQueue&) = delete;
  [[nodiscard]] uint32_t number() const;   // in events
  [[nodiscard]] uint32_t entries() const;  // completions it holds
  // As ibv_poll_cq: up to `count` completions into `out`; the number, or -1 after an overflow. Drives the device
  // under Progress::kApplication when the queue is empty.
  [[nodiscard]] int poll(int count, ibv_wc* out);
  // The same, with the time of each in ns of CLOCK_MONOTONIC, of Progress::kExternal of the runner's clock; of a queue without
  // time stamps 0.
  [[nodiscard]] int poll(int count, ibv_wc* out, uint64_t* stamps);
  // As ibv_resize_cq, beside all other calls: keeps what waits, and fails when more waits than would fit.
  [[nodiscard]] Status resize(int entries);

  // The next completion (the next solicited or failed one) is an event on the channel, once (IBTA 11.4.2.2). One that
  // waits already is none: ask, then poll, then sleep. A request for solicited ones does not weaken one for all.
  // Without a channel nothing happens.
  void request_notify(bool solicited_only);
  // For a caller whose event must not find an empty queue (ibv_get_cq_event): after get_event() has named this one. True when
  // what the event was about has been polled meanwhile; then there was no event, and the next completion is one again.
  bool take_back_event();
  [[nodiscard]] bool empty() const;  // nothing to poll at the moment
  // As ibv_ack_cq_events, for a caller whose queue must outlive what it was told of; see unacknowledged().
  void ack_events(uint32_t count);
  [[nodiscard]] uint32_t unacknowledged() const;  // events that get_event() gave out, less those acknowledged

 private:
  friend class Device;
  friend class ProtectionDomain;
  CompletionQueue(std::shared_ptr<Host> host, std::shared_ptr<CompletionRing> ring);
  std::shared_ptr<Host> host_;
  std::shared_ptr<CompletionRing> ring_;
};

}  // namespace roci
