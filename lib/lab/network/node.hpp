// Node of a network: a host with its programs, or a switch. Nodes share nothing but cables.
#pragma once

#include <atomic>
#include <string>
#include <utility>

#include "base/time/poller_group.hpp"
#include "port/sim/sim_link.hpp"

namespace roci::lab {

// Run by one thread at a time. Meanwhile, other threads may call arriving() only.
class Node final : public ArrivalListener {
 public:
  explicit Node(std::string name) : name_(std::move(name)) {}

  // Pollers are polled in the order in which they were added. They must outlive the node.
  void add(Poller& poller) { pollers_.add(poller); }
  // For a node with real ports, which do not announce arrivals: all pollers are polled whenever the node runs, and its
  // runner must touch() it repeatedly.
  void set_live() { live_ = true; }
  [[nodiscard]] bool is_live() const { return live_; }
  [[nodiscard]] const std::string& name() const { return name_; }

  // May be called by any thread.
  void arriving(Nanos when) override;

  // Earliest time at which work may be due.
  [[nodiscard]] Nanos next() const;
  // Must be called after a poller was given work at `now`.
  void touch(Nanos now) { touched_ = std::min(touched_, now); }

  // Does all work that is due before `end`, in order of time.
  void run(Nanos end);
  // Poller that reported work without end at one instant, if run() has stopped for this reason; else null.
  [[nodiscard]] const Poller* stuck() const { return stuck_; }
  [[nodiscard]] Nanos now() const { return now_; }

 private:
  // Limit of rounds at one instant. Real ports may deliver frames without end; virtual time then advances nevertheless.
  static constexpr uint64_t kMaxRounds = 1'000'000;
  static constexpr uint64_t kMaxLiveRounds = 64;

  std::string name_;
  PollerGroup pollers_;
  bool live_ = false;
  const Poller* stuck_ = nullptr;
  Nanos now_{0};
  Nanos next_{0};
  Nanos touched_ = kNever;
  std::atomic<int64_t> arriving_{kNever.count()};
};

}  // namespace roci::lab
