#include "lab/execution/window_runner.hpp"

#ifndef ROCI_LAB_THREAD_TEAM
#include <oneapi/tbb/blocked_range.h>
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>
#endif

#include <algorithm>
#include <string>

#include "lab/execution/thread_team.hpp"

namespace roci::lab {

#ifdef ROCI_LAB_THREAD_TEAM
class WindowRunner::Threads {
 public:
  explicit Threads(unsigned count) : team_(count) {}
  void run(const std::vector<Node*>& nodes, Nanos end) {
    team_.parallel_for(nodes.size(), [&](size_t i) { nodes[i]->run(end); });
  }

 private:
  ThreadTeam team_;
};
#else
class WindowRunner::Threads {
 public:
  explicit Threads(unsigned count)
      : limit_(tbb::global_control::max_allowed_parallelism, count), arena_(static_cast<int>(count)) {}
  void run(const std::vector<Node*>& nodes, Nanos end) {
    arena_.execute([&] {
      tbb::parallel_for(tbb::blocked_range<size_t>(0, nodes.size(), 1), [&](const auto& range) {
        for (size_t i = range.begin(); i != range.end(); ++i) nodes[i]->run(end);
      });
    });
  }

 private:
  tbb::global_control limit_;  // requested number, also on a machine with fewer CPUs
  tbb::task_arena arena_;
};
#endif

WindowRunner::WindowRunner(Nanos window, unsigned threads)
    : window_(window), threads_(threads > 1 ? std::make_unique<Threads>(threads) : nullptr) {}

WindowRunner::~WindowRunner() = default;

WindowRunner::Due WindowRunner::due() const {
  Due due;
  for (const Node* node : nodes_) due.node = std::min(due.node, node->next());
  for (const TimedTask* task : tasks_) due.task = std::min(due.task, task->next());
  return due;
}

// Like due(), with live nodes: these are due by the clock, and at the latest kLiveWindow after their last run while
// virtual time catches up.
WindowRunner::Due WindowRunner::due_by(Nanos clock, Nanos until) {
  Due due = this->due();
  if (live_.empty()) return due;
  const Nanos look = std::max(now_, std::min(clock, live_at_ + kLiveWindow));
  if (look < until) due.node = std::min(due.node, look);
  return due;
}

Status WindowRunner::run_until(Nanos until) {
  for (;;) {
    if (stops_ && stops_()) return fail("stopped", ECANCELED);
    const Nanos clock = throttle_ == nullptr ? kNever : throttle_->now();
    const Due due = due_by(clock, until);
    if (const Nanos next = std::min(due.first(), until); next > clock) {
      throttle_->rest(next);
      continue;
    }
    if (due.first() >= until) break;
    if (due.task <= due.node) {
      now_ = std::max(now_, due.task);
      for (TimedTask* task : tasks_) {
        if (task->next() <= due.task) ROCI_TRY(task->run(now_));
      }
      continue;
    }
    now_ = std::max(now_, due.node);
    if (throttle_ != nullptr) throttle_->on_round_start(now_, clock);
    if (!live_.empty()) {
      live_at_ = now_;
      for (Node* node : live_) node->touch(now_);
    }
    run_window(std::min({now_ + window(), due.task, until}));
    for (const Node* node : due_) {
      if (node->stuck() != nullptr)
        return fail("virtual time does not advance at " + std::to_string(node->now().count()) + " ns: '" +
                        std::string(node->stuck()->name()) + "' in " + node->name() +
                        " reports work without end",
                    ELOOP);
    }
  }
  now_ = std::max(now_, until);
  return {};
}

void WindowRunner::run_window(Nanos end) {
  due_.clear();
  for (Node* node : nodes_) {
    if (node->next() < end) due_.push_back(node);
  }
  constexpr size_t kWorthSharing = 4;
  if (threads_ != nullptr && due_.size() >= kWorthSharing) {
    threads_->run(due_, end);
  } else {
    for (Node* node : due_) node->run(end);
  }
}

}  // namespace roci::lab
