// Virtual time for a network of many nodes, on as many threads as there are. What a node sends arrives a cable's delay later,
// so all nodes can do what is due within the least of these delays, a window, without looking at each other: a conservative
// parallel simulation of discrete events (Chandy and Misra 1979) whose look-ahead is the cables'. Its results do not depend on
// the number of threads.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <vector>

#include "base/result.hpp"
#include "base/types.hpp"
#include "lab/node.hpp"
#include "lab/pace.hpp"

namespace roci::lab {

// What happens while all nodes stand still, at the times that it asks for: everything before has happened, nothing at that
// time or after it. It may do with the nodes what it likes, and touches those that have something new to do.
class Interlude {
 public:
  Interlude() = default;
  Interlude(const Interlude&) = delete;
  Interlude& operator=(const Interlude&) = delete;
  virtual ~Interlude() = default;
  [[nodiscard]] virtual Nanos next() const = 0;
  virtual Status run(Nanos now) = 0;
};

class WindowRunner {
 public:
  // No frame takes less than `window` from node to node.
  WindowRunner(Nanos window, unsigned threads);
  ~WindowRunner();

  // All outlive the runner.
  void add(Node& node) {
    nodes_.push_back(&node);
    if (node.is_live()) live_.push_back(&node);
  }
  void add(Interlude& interlude) { interludes_.push_back(&interlude); }

  // From now on no window begins sooner than the clock says, and live nodes run whenever there is time. When windows are late
  // the next follow at once.
  void keep(Pace& pace) { pace_ = &pace; }
  // Asked before each window; a run that is to stop fails with ECANCELED.
  void ask(std::function<bool()> stops) { stops_ = std::move(stops); }

  [[nodiscard]] Nanos now() const { return now_; }
  // Does all that is due before `until`. Fails when an interlude does, or when time stands still in a node.
  Status run_until(Nanos until);

 private:
  // As late as virtual time may be, live nodes run so often in it; and so far at most do they run ahead of the clock.
  static constexpr Nanos kLiveWindow = 10us;

  class Threads;
  // What is due first, of nodes and of interludes.
  struct Due {
    Nanos node = kNever, interlude = kNever;
    [[nodiscard]] Nanos first() const { return std::min(node, interlude); }
  };
  [[nodiscard]] Due due() const;
  Due due_by(Nanos clock, Nanos until);
  void run_window(Nanos end);

  [[nodiscard]] Nanos window() const { return live_.empty() ? window_ : std::min(window_, kLiveWindow); }

  Nanos window_;
  std::unique_ptr<Threads> threads_;  // null: the caller's alone
  std::vector<Node*> nodes_;
  std::vector<Node*> live_;
  std::vector<Interlude*> interludes_;
  Pace* pace_ = nullptr;  // null: as fast as it goes
  std::function<bool()> stops_;
  std::vector<Node*> due_;
  Nanos now_{0};
  Nanos live_at_{0};  // live nodes ran
};

}  // namespace roci::lab
