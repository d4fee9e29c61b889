#include "lab/window_runner.hpp"

#include <oneapi/tbb/blocked_range.h>
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>

#include <algorithm>
#include <string>

namespace roci::lab {

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
  tbb::global_control limit_;  // as many as were asked for, also on a machine with fewer CPUs
  tbb::task_arena arena_;
};

WindowRunner::WindowRunner(Nanos window, unsigned threads)
    : window_(window), threads_(threads > 1 ? std::make_unique<Threads>(threads) : nullptr) {}

WindowRunner::~WindowRunner() = default;

Status WindowRunner::run_until(Nanos until) {
  for (;;) {
    Nanos first = kNever, pause = kNever;
    for (const Node* node : nodes_) first = std::min(first, node->next());
    for (const Interlude* interlude : interludes_) pause = std::min(pause, interlude->next());
    if (std::min(first, pause) >= until) break;
    if (pause <= first) {
      now_ = std::max(now_, pause);
      for (Interlude* interlude : interludes_) {
        if (interlude->next() <= pause) ROCI_TRY(interlude->run(now_));
      }
      continue;
    }
    now_ = std::max(now_, first);
    const Nanos end = std::min({now_ + window_, pause, until});
    run_window(end);
    for (const Node* node : due_) {
      if (node->stuck() != nullptr)
        return fail("virtual time stands still at " + std::to_string(node->now().count()) + " ns: '" +
                        std::string(node->stuck()->name()) + "' in " + node->name() +
                        " claims work without end",
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
