// The line that shows how far a round is, on a terminal only; it leaves nothing behind.
#pragma once

#include <string>

#include "base/types.hpp"

namespace roci::perf {

class ProgressLine {
 public:
  // Writes to standard error when that is a terminal and `wanted`.
  explicit ProgressLine(bool wanted);
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  ~ProgressLine() { clear(); }

  void start(std::string what, Nanos now);  // "write bw, 65536 bytes"
  // Cheap to call often: it writes a few times a second. `fraction` of the round is done; `total` counts messages or
  // bytes done so far, whose rate per second `format` makes a text of.
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
