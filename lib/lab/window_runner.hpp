// Virtual time for a network of many nodes, on as many threads as there are. What a node sends arrives a cable's delay later,
// so all nodes can do what is due within the least of these delays, a window, without looking at each other: a conservative
// parallel simulation of discrete events (Chandy and Misra 1979) whose look-ahead is the cables'. Its results do not depend on
// the number of threads.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "base/result.hpp"
#include "base/types.hpp"
#include "lab/node.hpp"

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

  // Both outlive the runner.
  void add(Node& node) { nodes_.push_back(&node); }
  void add(Interlude& interlude) { interludes_.push_back(&interlude); }

  [[nodiscard]] Nanos now() const { return now_; }
  // Does all that is due before `until`. Fails when an interlude does, or when time stands still in a node.
  Status run_until(Nanos until);

 private:
  class Threads;
  void run_window(Nanos end);

  Nanos window_;
  std::unique_ptr<Threads> threads_;  // null: the caller's alone
  std::vector<Node*> nodes_;
  std::vector<Interlude*> interludes_;
  std::vector<Node*> due_;
  Nanos now_{0};
};

}  // namespace roci::lab
