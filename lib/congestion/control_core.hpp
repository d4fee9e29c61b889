// Control core: runs the plugins of the flows of several workers on a dedicated core (placement "dedicated").
//
//   worker --- events, a ring for each worker ---> core --- published decision in the flow ---> worker
//      ^                                             |
//      +------ list of flows with a new decision ----+
//
// Neither side waits for the other. If its ring is full, the worker adds what happened to the next event. A decision
// that is replaced before it was read is not needed. A flow is on the worker's list at most once.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/os/spinlock.hpp"
#include "base/types.hpp"
#include "congestion/flow_runner.hpp"
#include "roci/poller.hpp"

namespace roci {

// Lock-free list of flows for one reader; any number of writers.
class FlowList {
 public:
  // May be called by any thread. A flow that is on the list already keeps its position.
  void add(ControlFlow& flow) {
    if (flow.announced.exchange(true, std::memory_order_acq_rel)) return;
    flow.next_announced = first_.load(std::memory_order_relaxed);
    while (!first_.compare_exchange_weak(flow.next_announced, &flow, std::memory_order_release,
                                         std::memory_order_relaxed)) {
    }
  }
  // Reader: takes all flows, the latest first. look(flow) may add the flow again.
  template <class Look>
  bool take(Look&& look) {
    if (first_.load(std::memory_order_relaxed) == nullptr) return false;
    ControlFlow* flow = first_.exchange(nullptr, std::memory_order_acquire);
    while (flow != nullptr) {
      ControlFlow* const next = flow->next_announced;
      flow->announced.exchange(false, std::memory_order_acq_rel);
      look(*flow);
      flow = next;
    }
    return true;
  }
  [[nodiscard]] bool empty() const { return first_.load(std::memory_order_relaxed) == nullptr; }

 private:
  std::atomic<ControlFlow*> first_{nullptr};
};

// List of flows that their core has released.
class EndedFlows {
 public:
  // The core does not access the flow afterwards.
  void add(ControlFlow& flow) {
    flow.next_ended = first_.load(std::memory_order_relaxed);
    while (!first_.compare_exchange_weak(flow.next_ended, &flow, std::memory_order_release,
                                         std::memory_order_relaxed)) {
    }
  }
  // All flows, linked by next_ended.
  [[nodiscard]] ControlFlow* take() {
    if (empty()) return nullptr;
    return first_.exchange(nullptr, std::memory_order_acquire);
  }
  [[nodiscard]] bool empty() const { return first_.load(std::memory_order_relaxed) == nullptr; }

 private:
  std::atomic<ControlFlow*> first_{nullptr};
};

// Ring of events from one worker to one core.
class EventRing {
 public:
  enum class Kind : uint8_t { kStart, kEvent, kEnd };
  struct Record {
    ControlFlow* flow;
    Kind what;
    roci_cc_event event;  // its `path` is the member below, or null
    roci_cc_path path;    // only the used hops are written
  };

  explicit EventRing(uint32_t capacity);

  // Worker. Returns false if the ring is full. The event's path is copied.
  bool push(ControlFlow& flow, Kind what, const roci_cc_event& event);
  // Core: the oldest record, valid until pop(); null if the ring is empty.
  [[nodiscard]] const Record* front();
  void pop();
  [[nodiscard]] bool empty() const {
    return tail_.load(std::memory_order_acquire) == head_.load(std::memory_order_acquire);
  }
  [[nodiscard]] uint32_t capacity() const { return static_cast<uint32_t>(records_.size()); }

 private:
  std::vector<Record> records_;  // size: a power of two
  alignas(64) std::atomic<uint32_t> tail_{0};
  uint32_t head_seen_ = 0;
  alignas(64) std::atomic<uint32_t> head_{0};
  uint32_t tail_seen_ = 0;
};

// Poller of a control core. Owned by its thread.
class ControlCore final : public Poller {
 public:
  static constexpr uint32_t kRing = 1024;

  // `name`: "device.cc0". Has an event ring and a list of decisions per worker.
  ControlCore(std::string name, uint32_t workers, uint32_t trace, uint32_t ring = kRing);

  bool poll(Nanos now) override;
  [[nodiscard]] Nanos next_deadline() const override;
  [[nodiscard]] std::string_view name() const override { return name_; }

  [[nodiscard]] EventRing& events_of(uint32_t worker) { return links_[worker]->events; }
  // An ended flow may be on both lists. A reader that takes the list of ended flows first and then the list of
  // decisions may free the ended flows afterwards.
  [[nodiscard]] FlowList& decided_for(uint32_t worker) { return links_[worker]->decided; }
  [[nodiscard]] EndedFlows& ended_for(uint32_t worker) { return links_[worker]->ended; }
  // For a worker that is destroyed while the core is stopped: removes all its flows from the core.
  void remove(uint32_t worker);
  void remove(ControlFlow& flow) { runner_.stop(flow); }
  // May be called by any thread: recorded events and decisions.
  [[nodiscard]] std::vector<TraceRecord> trace() const {
    const std::scoped_lock guard(round_);
    return runner_.trace().records();
  }

  // May be called by any thread. Histogram, in powers of two of ns, of the time from an event to the round that
  // processed it.
  struct Counts {
    uint64_t events = 0;
    std::array<uint64_t, 32> delays{};
  };
  [[nodiscard]] Counts counts() const;

 private:
  // Maximum number of consecutive events of one worker, before the other workers have their turn.
  static constexpr uint32_t kMaxConsecutive = 64;
  struct Link {
    explicit Link(uint32_t ring) : events(ring) {}
    EventRing events;
    FlowList decided;
    EndedFlows ended;
  };
  void take(Link& link, const EventRing::Record& record, Nanos now);

  std::string name_;
  mutable Spinlock round_;  // held during a round
  std::vector<std::unique_ptr<Link>> links_;
  FlowRunner runner_;
  std::atomic<uint64_t> events_{0};
  std::array<std::atomic<uint64_t>, 32> delays_{};
};

}  // namespace roci
