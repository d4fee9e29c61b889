#include "base/os/quiet_signals.hpp"

#include <pthread.h>

#include <initializer_list>

namespace roci {

// Fault signals stay unblocked: a blocked fault signal terminates the process.
QuietSignals::QuietSignals() {
  sigset_t all;
  sigfillset(&all);
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS}) sigdelset(&all, fault);
  pthread_sigmask(SIG_BLOCK, &all, &before_);
}

QuietSignals::~QuietSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

}  // namespace roci
