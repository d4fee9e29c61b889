// The jobs of a command, taken by idle worker threads and ranks. Outcomes are printed in job order.
#pragma once

#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/os/interrupt.hpp"
#include "roci-lab/jobs.hpp"
#include "roci-lab/progress_line.hpp"

namespace roci::lab {

struct Outcome {
  std::string line{};     // row of the result table
  std::string error{};    // error message; empty if the run has results
  std::string failure{};  // messages of the run that failed; empty if none did
  bool stopped = false;   // by Ctrl-C or SIGTERM: nothing is printed
};

// Table of jobs and their outcomes. take() and done() are thread-safe; call the others after the worker threads have
// exited.
class JobTable {
 public:
  JobTable(size_t jobs, ProgressLine& line) : outcomes_(jobs), line_(line) {}

  // Number of the next job; none when all jobs are taken or after an interrupt.
  std::optional<size_t> take() {
    const std::lock_guard lock(mutex_);
    if (taken_ == outcomes_.size() || interrupted()) return std::nullopt;
    return taken_++;
  }
  void done(size_t job, Outcome outcome) {
    const std::lock_guard lock(mutex_);
    outcomes_[job] = std::move(outcome);
    for (; printed_ < outcomes_.size() && outcomes_[printed_]; ++printed_) print(*outcomes_[printed_]);
  }
  [[nodiscard]] bool ended(size_t job) const { return outcomes_[job] && !outcomes_[job]->stopped; }
  // Whether the run has results.
  [[nodiscard]] bool succeeded(size_t job) const { return ended(job) && outcomes_[job]->error.empty(); }

  // Whether all messages of the run succeeded.
  [[nodiscard]] bool without_failure(size_t job) const {
    return succeeded(job) && outcomes_[job]->failure.empty();
  }

 private:
  void print(const Outcome& outcome) {
    if (outcome.stopped) return;
    if (!outcome.error.empty()) return line_.complain(outcome.error);
    line_.print(outcome.line);
    if (!outcome.failure.empty()) line_.complain(outcome.failure);
  }

  std::mutex mutex_;
  std::vector<std::optional<Outcome>> outcomes_;
  size_t taken_ = 0, printed_ = 0;
  ProgressLine& line_;
};

}  // namespace roci::lab
