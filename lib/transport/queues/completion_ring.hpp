// Completion queue: a ring of ibv_wc that workers write and application threads poll.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/os/spinlock.hpp"
#include "base/types.hpp"
#include "roci/events.hpp"
#include "transport/queues/channel_queue.hpp"

namespace roci {

class CompletionRing;

// List of one-producer rings with unpublished completions. They are published together at the end of a packet batch, so
// that the shared cache line moves between cores once per batch instead of once per completion. Events follow after all
// completions, in the order of the first completion of each queue: a program that waits for the event of one queue and
// then polls another one, such as perftest with -e, finds what has happened before.
class CompletionBatch {
 public:
  CompletionBatch() = default;
  CompletionBatch(const CompletionBatch&) = delete;
  CompletionBatch& operator=(const CompletionBatch&) = delete;
  void add(CompletionRing& ring);
  // Called by the producer, before it releases its worker token.
  void publish() {
    if (first_ != nullptr) publish_all();
  }

 private:
  void publish_all();

  CompletionRing* first_ = nullptr;
  CompletionRing* last_ = nullptr;  // if there is a first one
};

// Ring of completions with a lock for consumers and, for several producers, one for producers.
class CompletionRing {
 public:
  enum class Producers : uint8_t {
    kMany,  // workers, concurrently; push() takes a lock
    kOne,   // one worker, whose token push(), resize() and remove() require; push() takes no lock
  };
  // `first` is the number of the first completion; numbers wrap at 2^32. Events about this queue contain `object`.
  // After request_notify(), a completion raises an event on `channel`, if not null.
  explicit CompletionRing(uint32_t capacity, uint32_t first = 0, const EventObject& object = {},
                          std::shared_ptr<ChannelQueue> channel = nullptr,
                          Producers producers = Producers::kMany);
  ~CompletionRing();
  CompletionRing(const CompletionRing&) = delete;
  CompletionRing& operator=(const CompletionRing&) = delete;

  [[nodiscard]] uint32_t capacity() const { return capacity_.load(std::memory_order_relaxed); }
  [[nodiscard]] const EventObject& object() const { return member_.object; }

  // Enables time stamps of completions. Must be called before the first completion.
  void keep_times() {
    times_.resize(entries_.size());
    keeps_times_ = true;
  }

  // Producer. False when the ring is full: the completion is lost and the queue stays in error (IBTA 11.6.3.1). With
  // one producer and a batch, the completion is published with the batch; otherwise at once.
  bool push(const ibv_wc& completion, bool solicited, CompletionBatch* batch = nullptr, Nanos now = Nanos{0});
  // Whether a completion has been lost.
  [[nodiscard]] bool overflowed() const { return overflowed_.load(std::memory_order_relaxed); }
  // True for the first caller, which reports the overflow to the application. False after abandon_events().
  bool claim_overflow() { return !overflow_claimed_.exchange(true, std::memory_order_relaxed); }

  // Consumer. Returns up to `count` completions; -1 when the queue is in error and empty. `times`: time of each
  // completion by the producer's clock, ns; 0 without keep_times().
  int poll(int count, ibv_wc* out, uint64_t* times = nullptr);
  [[nodiscard]] bool empty() const {
    return head_.load(std::memory_order_relaxed) == tail_.load(std::memory_order_seq_cst);
  }
  // Memory for resize(). Allocated without locks and tokens, because its pages are set to zero; freed without them too.
  struct Space {
    std::vector<ibv_wc> entries;
    std::vector<uint64_t> times;
  };
  [[nodiscard]] Space make_space(uint32_t capacity) const;
  // Any thread; with one producer, the caller holds its token. `space`: of make_space(capacity); contains the previous
  // memory afterwards. False, without effect, when more than `capacity` completions wait.
  bool resize(uint32_t capacity, Space& space);

  // One-shot notification through the channel.
  void request_notify(bool solicited_only);
  // Retracts an event that take() has returned, if its completions have been polled meanwhile: acknowledges it and arms
  // the queue again. False when the queue is not empty or is in error.
  bool take_back_event();
  void ack_events(uint32_t count);
  [[nodiscard]] uint32_t unacknowledged();
  // Removes the completions of a queue pair that is reset or destroyed (permitted by IBTA 11.2.5.4).
  void remove(uint32_t qp_num);
  // Called when the application has destroyed the queue: no thread polls or waits any more. Queue pairs may still push.
  void abandon_events();

 private:
  enum class Armed : uint8_t { kNo, kSolicited, kAny };

  friend class CompletionBatch;
  void publish(uint32_t tail);
  void notify(bool solicited);
  [[nodiscard]] ibv_wc& at(uint32_t number) { return entries_[number & (entries_.size() - 1)]; }

  ChannelMember member_;
  const std::shared_ptr<ChannelQueue> channel_;
  const bool many_producers_;
  std::atomic<uint32_t> capacity_;
  // The size is a power of two, so that slots stay consecutive when numbers wrap. Accessed under either lock, replaced
  // under both. With one producer, its worker token replaces the producer lock.
  std::vector<ibv_wc> entries_;
  std::vector<uint64_t> times_;  // of the entries; empty without keep_times()
  Spinlock producers_;
  Spinlock consumers_;
  std::atomic<bool> overflowed_{false};
  std::atomic<bool> overflow_claimed_{false};
  std::atomic<bool> disowned_{false};
  std::atomic<Armed> armed_{Armed::kNo};
  bool keeps_times_ = false;                   // does not change after the first completion
  std::atomic<bool> solicited_only_{false};    // argument of the last request_notify()
  alignas(64) std::atomic<uint32_t> head_{0};  // next to poll
  alignas(64) std::atomic<uint32_t> tail_{0};  // next to fill, as published to the application
  // Producer's state.
  alignas(64) uint32_t filled_ = 0;  // next to fill; ahead of tail_ while in a batch
  uint32_t head_seen_ = 0;           // last value of head_ that was read
  bool in_batch_ = false;
  bool batch_solicited_ = false;  // the batch has a solicited completion
  CompletionRing* next_in_batch_ = nullptr;
};

}  // namespace roci
