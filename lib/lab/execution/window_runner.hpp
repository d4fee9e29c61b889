// Runner of the nodes of a network in virtual time, on any number of threads. A frame reaches another node at least one
// cable delay after it was sent. All nodes can therefore run in parallel for the minimum of these delays, a window.
// This is a conservative parallel simulation of discrete events (Chandy and Misra 1979), with the cable delay as
// look-ahead. Results do not depend on the number of threads.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <vector>

#include "base/result.hpp"
#include "base/types.hpp"
#include "lab/execution/realtime_throttle.hpp"
#include "lab/network/node.hpp"

namespace roci::lab {

// Action while no node runs, at the time next(): all events before this time have been processed, and none at or after
// it. It may access all nodes, and must touch() those that have new work.
class TimedTask {
 public:
  TimedTask() = default;
  TimedTask(const TimedTask&) = delete;
  TimedTask& operator=(const TimedTask&) = delete;
  virtual ~TimedTask() = default;
  [[nodiscard]] virtual Nanos next() const = 0;
  virtual Status run(Nanos now) = 0;
};

class WindowRunner {
 public:
  // `window`: minimum time of a frame from node to node.
  WindowRunner(Nanos window, unsigned threads);
  ~WindowRunner();

  // All must outlive the runner.
  void add(Node& node) {
    nodes_.push_back(&node);
    if (node.is_live()) live_.push_back(&node);
  }
  void add(TimedTask& task) { tasks_.push_back(&task); }

  // Ties virtual time to the clock: from now on no window starts before its time, and live nodes run whenever the
  // runner is idle. Late windows follow each other at once.
  void set_throttle(RealtimeThrottle& pace) { throttle_ = &pace; }
  // `stops` is called before each window. If it returns true, the run fails with ECANCELED.
  void stop_when(std::function<bool()> stops) { stops_ = std::move(stops); }

  [[nodiscard]] Nanos now() const { return now_; }
  // Does all work that is due before `until`. Fails if an interlude fails, or if a node does not advance in time.
  Status run_until(Nanos until);

 private:
  // Maximum time between runs of live nodes while virtual time is late, and by which they run ahead of the clock.
  static constexpr Nanos kLiveWindow = 10us;

  class Threads;
  // Times of the first work of nodes and of interludes.
  struct Due {
    Nanos node = kNever, task = kNever;
    [[nodiscard]] Nanos first() const { return std::min(node, task); }
  };
  [[nodiscard]] Due due() const;
  Due due_by(Nanos clock, Nanos until);
  void run_window(Nanos end);

  [[nodiscard]] Nanos window() const { return live_.empty() ? window_ : std::min(window_, kLiveWindow); }

  Nanos window_;
  std::unique_ptr<Threads> threads_;  // null: only the calling thread
  std::vector<Node*> nodes_;
  std::vector<Node*> live_;
  std::vector<TimedTask*> tasks_;
  RealtimeThrottle* throttle_ = nullptr;  // null: as fast as possible
  std::function<bool()> stops_;
  std::vector<Node*> due_;
  Nanos now_{0};
  Nanos live_at_{0};  // last run of live nodes
};

}  // namespace roci::lab
