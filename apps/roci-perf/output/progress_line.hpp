// The progress line of a round. It is shown on a terminal only and cleared at the end.
#pragma once

#include <string>

#include "base/types.hpp"

namespace roci::perf {

// The line, at most `columns` long: the bar is shortened first.
std::string progress_text(const std::string& what, double fraction, const std::string& rate, size_t columns);

class ProgressLine {
 public:
  // Writes to standard error if that is a terminal and `wanted` is set.
  explicit ProgressLine(bool wanted);
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  ~ProgressLine() { clear(); }

  void start(std::string what, Nanos now);  // "write bw, 65536 bytes"
  // Writes a few times per second; other calls are cheap. `fraction`: completed part of the round. `total`: messages or
  // bytes so far; `format` converts their rate per second into text.
  void update(Nanos now, double fraction, uint64_t total, std::string (*format)(double per_second)) {
    if (now < next_) return;
    write(now, fraction, total, format);
  }
  void clear();

 private:
  void write(Nanos now, double fraction, uint64_t total, std::string (*format)(double per_second));
  bool shown_ = false;
  std::string what_;
  Nanos next_ = kNever;
  Nanos last_{0};
  uint64_t last_total_ = 0;
  bool terminal_;
};

}  // namespace roci::perf
