// Threads that a library makes leave signals to the program. One that is sent to the process goes to any thread that has not
// blocked it: a program that blocks signals and reads them from a descriptor, as tgtd does, would be ended by one that a thread of
// ours took.
#pragma once

#include <csignal>

namespace roci {

// While it is there, the calling thread takes no signals but those of its own faults, and neither do threads that it makes.
class QuietSignals {
 public:
  QuietSignals();
  ~QuietSignals();
  QuietSignals(const QuietSignals&) = delete;
  QuietSignals& operator=(const QuietSignals&) = delete;

 private:
  sigset_t before_{};
};

}  // namespace roci
