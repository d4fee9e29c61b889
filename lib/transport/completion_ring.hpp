// A completion queue: a ring of ibv_wc that workers fill and application threads empty.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/spinlock.hpp"
#include "base/types.hpp"
#include "roci/events.hpp"
#include "transport/channel_queue.hpp"

namespace roci {

class CompletionRing;

// Rings of one producer with completions that their application cannot see yet. They are shown at the end of a batch of
// packets, all at once: what the application reads then changes hands between cores once, and not for each of them.
class CompletionBatch {
 public:
  CompletionBatch() = default;
  CompletionBatch(const CompletionBatch&) = delete;
  CompletionBatch& operator=(const CompletionBatch&) = delete;
  void add(CompletionRing& ring);
  // The producer's; before it lets go of its token.
  void show();

 private:
  CompletionRing* first_ = nullptr;
};

class CompletionRing {
 public:
  enum class Producers : uint8_t {
    kMany,  // workers, each when it likes
    kOne,   // one worker; push(), resize() and forget() need its token, and nobody takes a lock to push
  };
  // `first` numbers the first completion; the numbers wrap at 2^32. `object` is whom events about this queue name;
  // `channel`, if any, is told of completions when that was asked for.
  explicit CompletionRing(uint32_t capacity, uint32_t first = 0, const EventObject& object = {},
                          std::shared_ptr<ChannelQueue> channel = nullptr,
                          Producers producers = Producers::kMany);
  ~CompletionRing();
  CompletionRing(const CompletionRing&) = delete;
  CompletionRing& operator=(const CompletionRing&) = delete;

  [[nodiscard]] uint32_t capacity() const { return capacity_.load(std::memory_order_relaxed); }
  [[nodiscard]] const EventObject& object() const { return member_.object; }

  // From now on the time of each completion is kept. Before the first one.
  void keep_times() { times_.resize(entries_.size()); }

  // The worker's side. False when the ring is full: the queue is then in error for good and loses this completion
  // (IBTA 11.6.3.1), since overwriting or waiting would both be worse.
  // With one producer the completion is shown with the batch; with many, or without a batch, at once.
  bool push(const ibv_wc& completion, bool solicited, CompletionBatch* batch = nullptr, Nanos now = Nanos{0});
  // A completion has been lost.
  [[nodiscard]] bool overflowed() const { return overflowed_.load(std::memory_order_relaxed); }
  // True for the first to ask after an overflow: that one tells the application. Never once it was disowned.
  bool claim_overflow() { return !overflow_claimed_.exchange(true, std::memory_order_relaxed); }

  // The application's side: up to `count` completions; -1 when the queue is in error and empty.
  // With `times`, when each was made, as its maker's clock says, in ns; 0 where that is not kept.
  int poll(int count, ibv_wc* out, uint64_t* times = nullptr);
  [[nodiscard]] bool empty() const {
    return head_.load(std::memory_order_relaxed) == tail_.load(std::memory_order_seq_cst);
  }
  // Any thread, with many producers beside all others. False, with nothing changed, when more than `capacity` completions wait.
  bool resize(uint32_t capacity);

  // One-shot notification through the channel.
  void request_notify(bool solicited_only);
  // The event just given out tells nothing when its completions have been polled meanwhile: then it is as if it had not been,
  // and the next completion is an event. False when there is something to poll.
  bool take_back_event();
  void ack_events(uint32_t count);
  [[nodiscard]] uint32_t unacknowledged();
  // Takes out what still waits for a queue pair that is going away (IBTA 11.2.5.4 lets them disappear).
  void forget(uint32_t qp_num);
  // Nobody polls or waits any more; queue pairs may still complete into it.
  void disown();

 private:
  enum class Armed : uint8_t { kNo, kSolicited, kAny };

  friend class CompletionBatch;
  void show(uint32_t tail);
  void notify(bool solicited);
  [[nodiscard]] ibv_wc& at(uint32_t number) { return entries_[number & (entries_.size() - 1)]; }

  ChannelMember member_;
  const std::shared_ptr<ChannelQueue> channel_;
  const bool many_producers_;
  std::atomic<uint32_t> capacity_;
  // A power of two, else the place of a number would jump when numbers wrap. Used under either lock, replaced under
  // both. With one producer, its token stands for the first of them.
  std::vector<ibv_wc> entries_;
  std::vector<uint64_t> times_;  // of the entries, if it is kept
  Spinlock producers_;
  Spinlock consumers_;
  std::atomic<bool> overflowed_{false};
  std::atomic<bool> overflow_claimed_{false};
  std::atomic<bool> disowned_{false};
  std::atomic<Armed> armed_{Armed::kNo};
  std::atomic<bool> asked_for_solicited_{false};  // by the last request
  alignas(64) std::atomic<uint32_t> head_{0};     // next to poll
  alignas(64) std::atomic<uint32_t> tail_{0};     // next to fill, as far as the application knows
  // The producer's.
  alignas(64) uint32_t filled_ = 0;  // next to fill; ahead of tail_ while in a batch
  uint32_t head_seen_ = 0;           // head_ when it was last looked at
  bool in_batch_ = false;
  bool batch_solicited_ = false;  // a completion of the batch is one that solicited notifications are for
  CompletionRing* next_in_batch_ = nullptr;
};

}  // namespace roci
