// A core that runs the plugins of flows of several workers (placement "dedicated").
//
//   worker --- events, a ring for each worker ---> core --- published decision in the flow ---> worker
//      ^                                             |
//      +------ list of flows with a new decision ----+
//
// Nobody waits for the other. A worker whose ring is full keeps what happened and says it with the next event; a decision
// that was not read before the next one came is not missed. A flow is on the worker's list at most once.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/poller.hpp"
#include "base/spinlock.hpp"
#include "congestion/flow_runner.hpp"

namespace roci {

// Flows that the other side shall look at: any number of writers, one reader.
class FlowList {
 public:
  // Any thread; a flow that is on the list stays where it is.
  void add(ControlFlow& flow) {
    if (flow.announced.exchange(true, std::memory_order_acq_rel)) return;
    flow.next_announced = first_.load(std::memory_order_relaxed);
    while (!first_.compare_exchange_weak(flow.next_announced, &flow, std::memory_order_release,
                                         std::memory_order_relaxed)) {
    }
  }
  // The reader: takes all, the latest first; look(flow) may add it again.
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

// Flows that their core does not know any more.
class EndedFlows {
 public:
  // The core's last touch of the flow.
  void add(ControlFlow& flow) {
    flow.next_ended = first_.load(std::memory_order_relaxed);
    while (!first_.compare_exchange_weak(flow.next_ended, &flow, std::memory_order_release,
                                         std::memory_order_relaxed)) {
    }
  }
  // All of them, chained by next_ended.
  [[nodiscard]] ControlFlow* take() {
    if (empty()) return nullptr;
    return first_.exchange(nullptr, std::memory_order_acquire);
  }
  [[nodiscard]] bool empty() const { return first_.load(std::memory_order_relaxed) == nullptr; }

 private:
  std::atomic<ControlFlow*> first_{nullptr};
};

// From one worker to one core.
class EventRing {
 public:
  enum class What : uint8_t { kStart, kEvent, kEnd };
  struct Record {
    ControlFlow* flow;
    What what;
    roci_cc_event event;  // of which `path` is the one below, or null
    roci_cc_path path;    // only as many hops as it says are written
  };

  explicit EventRing(uint32_t capacity);

  // The worker's. False when it is full. An event's path may be anywhere.
  bool push(ControlFlow& flow, What what, const roci_cc_event& event);
  // The core's: the oldest, in place, until pop(); null when there is none.
  [[nodiscard]] const Record* front();
  void pop();
  [[nodiscard]] bool empty() const {
    return tail_.load(std::memory_order_acquire) == head_.load(std::memory_order_acquire);
  }
  [[nodiscard]] uint32_t capacity() const { return static_cast<uint32_t>(records_.size()); }

 private:
  std::vector<Record> records_;  // a power of two of them
  alignas(64) std::atomic<uint32_t> tail_{0};
  uint32_t head_seen_ = 0;
  alignas(64) std::atomic<uint32_t> head_{0};
  uint32_t tail_seen_ = 0;
};

class ControlCore final : public Poller {
 public:
  static constexpr uint32_t kRing = 1024;

  // `name`: "device.cc0". It has a ring from each of so many workers, and a list towards each.
  ControlCore(std::string name, uint32_t workers, uint32_t trace, uint32_t ring = kRing);

  bool poll(Nanos now) override;
  [[nodiscard]] Nanos next_deadline() const override;
  [[nodiscard]] std::string_view name() const override { return name_; }

  [[nodiscard]] EventRing& events_of(uint32_t worker) { return links_[worker]->events; }
  // A flow that has ended may be on both lists: who takes the ended ones first and then the decided ones may free them.
  [[nodiscard]] FlowList& decided_for(uint32_t worker) { return links_[worker]->decided; }
  [[nodiscard]] EndedFlows& ended_for(uint32_t worker) { return links_[worker]->ended; }
  // For a worker that goes, with the core stopped: nothing of its flows is left here.
  void forget(uint32_t worker);
  void forget(ControlFlow& flow) { runner_.stop(flow); }
  // Any thread: what its algorithms were told and decided.
  [[nodiscard]] std::vector<TraceRecord> trace() const {
    const std::scoped_lock guard(round_);
    return runner_.trace().records();
  }

  // Any thread. Between an event's time and that of the round in which it was decided, in powers of two of ns.
  struct Counts {
    uint64_t events = 0;
    std::array<uint64_t, 32> delays{};
  };
  [[nodiscard]] Counts counts() const;

 private:
  // Of these, events of one worker in a row, before the others have their turn.
  static constexpr uint32_t kInARow = 64;
  struct Link {
    explicit Link(uint32_t ring) : events(ring) {}
    EventRing events;
    FlowList decided;
    EndedFlows ended;
  };
  void take(Link& link, const EventRing::Record& record, Nanos now);

  std::string name_;
  mutable Spinlock round_;  // held while it is at work
  std::vector<std::unique_ptr<Link>> links_;
  FlowRunner runner_;
  std::atomic<uint64_t> events_{0};
  std::array<std::atomic<uint64_t>, 32> delays_{};
};

}  // namespace roci
