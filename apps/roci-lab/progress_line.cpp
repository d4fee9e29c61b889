#include "roci-lab/progress_line.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "roci-lab/text.hpp"

namespace roci::lab {

ProgressLine::ProgressLine(size_t jobs, bool wanted)
    : jobs_(jobs), shown_(wanted && ::isatty(STDERR_FILENO) != 0) {}

void ProgressLine::started(size_t job, const std::string& name, Nanos duration) {
  const std::lock_guard lock(mutex_);
  running_[job] = {name, duration, {}, std::chrono::steady_clock::now()};
}

void ProgressLine::show(size_t job, const ExperimentProgress& at) {
  const std::lock_guard lock(mutex_);
  running_[job].at = at;
  draw();
}

void ProgressLine::ended(size_t job) {
  const std::lock_guard lock(mutex_);
  running_.erase(job);
  ++ended_;
  wipe();
}

void ProgressLine::print(const std::string& text) {
  const std::lock_guard lock(mutex_);
  wipe();
  std::printf("%s\n", text.c_str());
  std::fflush(stdout);
}

void ProgressLine::complain(const std::string& text) {
  const std::lock_guard lock(mutex_);
  wipe();
  std::fprintf(stderr, "roci-lab: %s\n", text.c_str());
}

void ProgressLine::clear() {
  const std::lock_guard lock(mutex_);
  wipe();
}

void ProgressLine::wipe() {
  if (shown_) std::fprintf(stderr, "\r\033[K");
}

// One active run: its simulated time. Several: the number of finished runs.
void ProgressLine::draw() {
  if (!shown_) return;
  double parts = 0, hops_per_second = 0;
  for (const auto& [number, run] : running_) {
    parts +=
        std::min(1.0, static_cast<double>(run.at.now.count()) / static_cast<double>(run.duration.count()));
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - run.start_time;
    hops_per_second += static_cast<double>(run.at.packet_hops) / took.count();
  }
  const bool one = running_.size() == 1;
  const double part = one ? parts : (static_cast<double>(ended_) + parts) / static_cast<double>(jobs_);
  constexpr int kWidth = 30;
  const auto filled = static_cast<size_t>(part * kWidth);
  const Running& first = running_.begin()->second;
  const std::string name = one ? first.name : std::to_string(running_.size()) + " runs";
  const std::string where = one ? span(first.at.now) + " of " + span(first.duration)
                                : std::to_string(ended_) + " of " + std::to_string(jobs_) + " done";
  std::fprintf(stderr, "\r\033[K%s [%s%s] %3.0f %%  %s  %s packet-hops/s", name.c_str(),
               std::string(filled, '#').c_str(), std::string(kWidth - filled, ' ').c_str(), part * 100,
               where.c_str(), short_number(hops_per_second).c_str());
  std::fflush(stderr);
}

}  // namespace roci::lab
