#include "roci-perf/output/progress_line.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>

#include "base/os/standard_output.hpp"

namespace roci::perf {
namespace {

constexpr Nanos kInterval = 200ms;
constexpr size_t kBarWidth = 24;
constexpr size_t kNarrowBar = 4;  // narrower bars are omitted

}  // namespace

std::string progress_text(const std::string& what, double fraction, const std::string& rate, size_t columns) {
  const double done = std::clamp(fraction, 0.0, 1.0);
  std::array<char, 16> percent;
  std::snprintf(percent.data(), percent.size(), "%3.0f %%", done * 100);
  const std::string end = std::string(percent.data()) + "  " + rate;
  const size_t other = 1 + what.size() + 2 + 3 + end.size();  // " WHAT  [] END"
  const size_t width = std::min(kBarWidth, columns > other ? columns - other : 0);
  std::string line = " " + what + "  ";
  if (width >= kNarrowBar) {
    const auto filled = static_cast<size_t>(done * static_cast<double>(width));
    line += "[" + std::string(filled, '#') + std::string(width - filled, '.') + "] ";
  }
  return (line + end).substr(0, columns);
}

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
  // A line that fills the terminal would wrap, and the next one could not replace it.
  const size_t columns = terminal_columns(STDERR_FILENO).value_or(80) - 1;
  std::fprintf(stderr, "\r\033[K%s", progress_text(what_, fraction, rate, columns).c_str());
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
