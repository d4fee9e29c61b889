// The progress line at the bottom of a terminal.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "lab/execution/experiment.hpp"

namespace roci::lab {

// Prints the progress of runs on standard error. Thread-safe. Shows no progress if standard error is not a terminal.
class ProgressLine {
 public:
  ProgressLine(size_t jobs, bool wanted);
  ~ProgressLine() { clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void started(size_t job, const std::string& name, Nanos duration);
  void show(size_t job, const ExperimentProgress& at);
  void ended(size_t job);
  // Prints a permanent line above the progress line: print() on standard output, complain() on standard error.
  void print(const std::string& text);
  void complain(const std::string& text);
  void clear();

 private:
  struct Running {
    std::string name;
    Nanos duration;
    ExperimentProgress at;
    std::chrono::steady_clock::time_point start_time;
  };
  void draw();
  void wipe();

  std::mutex mutex_;
  size_t jobs_;
  bool shown_;
  size_t ended_ = 0;
  std::map<size_t, Running> running_;
};

}  // namespace roci::lab
