// Completion queues and completion channels. Created by Device.
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

// Whether a completion queue records the time of each completion.
enum class TimeStamps : uint8_t { kNone, kMonotonic };

// Event channel that several completion queues share, as ibv_comp_channel.
class CompletionChannel {
 public:
  ~CompletionChannel();
  CompletionChannel(const CompletionChannel&) = delete;
  CompletionChannel& operator=(const CompletionChannel&) = delete;
  // Readable while events are pending, for poll() etc.; the caller must not read or close it, and may set O_NONBLOCK.
  [[nodiscard]] int fd() const;
  // As ibv_get_cq_event without blocking: returns the completion queue of the oldest event, or nullopt. Destruction of
  // a completion queue removes its events.
  [[nodiscard]] std::optional<EventObject> get_event();
  // Number of completion queues on this channel.
  [[nodiscard]] uint32_t users() const;
  [[nodiscard]] ChannelQueue& queue() { return *queue_; }  // internal

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
  [[nodiscard]] uint32_t number() const;   // identifies the queue in events
  [[nodiscard]] uint32_t entries() const;  // capacity
  // As ibv_poll_cq: stores up to `count` completions in `out` and returns their number. After an overflow it returns
  // the completions that are pending, then -1. Polls the device under Progress::kApplication if the queue is empty.
  [[nodiscard]] int poll(int count, ibv_wc* out);
  // The same, with the time of each completion in ns: of CLOCK_MONOTONIC, or of the runner's clock under
  // Progress::kExternal. 0 if the queue has no time stamps.
  [[nodiscard]] int poll(int count, ibv_wc* out, uint64_t* stamps);
  // As ibv_resize_cq, concurrently with all other calls. Keeps pending completions; fails if they exceed `entries`.
  [[nodiscard]] Status resize(int entries);

  // Requests one event on the channel for the next completion, or for the next solicited or failed one (IBTA 11.4.2.2).
  // Completions that are already pending raise no event: call this, then poll, then block. A request for solicited
  // completions does not replace a pending request for all. No effect without a channel.
  void request_notify(bool solicited_only);
  // For a caller whose events must not refer to an empty queue (ibv_get_cq_event); call it after get_event() returned
  // this queue. Returns true if the completions of the event were already polled: the event is then void, and the next
  // completion raises one again.
  [[nodiscard]] bool take_back_event();
  [[nodiscard]] bool empty() const;  // nothing to poll now
  // As ibv_ack_cq_events, for a caller that must not destroy the queue before its events are acknowledged.
  void ack_events(uint32_t count);
  // Number of events that get_event() returned and that are not acknowledged.
  [[nodiscard]] uint32_t unacknowledged() const;

 private:
  friend class Device;
  friend class ProtectionDomain;
  CompletionQueue(std::shared_ptr<Host> host, std::shared_ptr<CompletionRing> ring);
  std::shared_ptr<Host> host_;
  std::shared_ptr<CompletionRing> ring_;
};

}  // namespace roci
