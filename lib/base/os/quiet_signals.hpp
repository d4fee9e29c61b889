// Signal mask for threads that the library creates, so that signals are handled by threads of the program. A signal to
// the process is delivered to any thread that does not block it. A program that blocks signals and reads them from a
// descriptor, such as tgtd, would be terminated by a signal delivered to a thread of the library.
#pragma once

#include <csignal>

namespace roci {

// While it exists, the calling thread and threads that it creates block all signals except those of their own faults.
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
