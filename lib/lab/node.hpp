// A part of a network that shares nothing with the others but cables: a host with its programs, or a switch.
#pragma once

#include <atomic>
#include <string>
#include <utility>

#include "base/poller_group.hpp"
#include "port/sim_link.hpp"

namespace roci::lab {

// Run by one thread at a time. Others may tell it of arrivals meanwhile, and of nothing else.
class Node final : public ArrivalListener {
 public:
  explicit Node(std::string name) : name_(std::move(name)) {}

  // Pollers are polled in the order they were added, and outlive the node.
  void add(Poller& poller) { pollers_.add(poller); }
  // The node has real ports, which announce nothing: its pollers are all polled whenever it runs, and whoever runs it touches
  // it again and again.
  void set_live() { live_ = true; }
  [[nodiscard]] bool is_live() const { return live_; }
  [[nodiscard]] const std::string& name() const { return name_; }

  // Any thread.
  void arriving(Nanos when) override;

  // The first time at which there may be something to do.
  [[nodiscard]] Nanos next() const;
  // Somebody has given a poller something to do at `now`.
  void touch(Nanos now) { touched_ = std::min(touched_, now); }

  // Does everything due before `end`, in the order of time.
  void run(Nanos end);
  // The poller that claimed work over and over at one instant, when run() has given up for it; else null.
  [[nodiscard]] const Poller* stuck() const { return stuck_; }
  [[nodiscard]] Nanos now() const { return now_; }

 private:
  // At one instant. Real ports may go on giving frames for ever: then the time goes on, too.
  static constexpr uint64_t kMostRounds = 1'000'000;
  static constexpr uint64_t kMostLiveRounds = 64;

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
