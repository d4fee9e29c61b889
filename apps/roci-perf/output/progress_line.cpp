#include "roci-perf/output/progress_line.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace roci::perf {
namespace {

constexpr Nanos kInterval = 200ms;
constexpr int kBarWidth = 24;

}  // namespace

ProgressLine::ProgressLine(bool wanted) : terminal_(wanted && isatty(STDERR_FILENO) == 1) {}

void ProgressLine::start(std::string what, Nanos now) {
  clear();
  what_ = std::move(what);
  last_ = now;
  last_total_ = 0;
  next_ = terminal_ ? now + kInterval : kNever;
}

void ProgressLine::write(Nanos now, double fraction, uint64_t total,
                         std::string (*format)(double per_second)) {
  const double seconds = static_cast<double>((now - last_).count()) * 1e-9;
  const std::string rate = format(static_cast<double>(total - last_total_) / seconds);
  const double done = std::clamp(fraction, 0.0, 1.0);
  const auto filled = static_cast<size_t>(done * kBarWidth);
  const std::string bar = std::string(filled, '#') + std::string(kBarWidth - filled, '.');
  std::fprintf(stderr, "\r\033[K %s  [%s] %3.0f %%  %s", what_.c_str(), bar.c_str(), done * 100,
               rate.c_str());
  std::fflush(stderr);
  shown_ = true;
  last_ = now;
  last_total_ = total;
  next_ = now + kInterval;
}

void ProgressLine::clear() {
  if (shown_) {
    std::fputs("\r\033[K", stderr);
    std::fflush(stderr);
  }
  shown_ = false;
  next_ = kNever;
}

}  // namespace roci::perf
