// Scheduler functions that require no privileges.
#pragma once

#include <sys/types.h>

#include "base/types.hpp"

namespace roci {

// Requests a short time slice for the calling thread. When it becomes runnable it then runs before threads that have
// used more of their slices, such as spinning threads. Linux 6.12 and later (EEVDF); elsewhere the highest priority
// that the process may set, if any. Returns whether either was granted.
bool request_short_slice(Nanos slice);

// Whether the process is stopped by a signal or a debugger. False if its state cannot be read.
bool is_stopped(pid_t process);

// Processor time and state of a thread of this process.
struct ThreadTime {
  Nanos ran{0};          // processor time since its start
  bool runnable = true;  // running or waiting for a processor; false: blocked or ended
};
ThreadTime time_of_thread(pid_t thread);

// Time since its start for which the calling thread was runnable but not running; 0 if the kernel does not report it.
Nanos own_wait_time();

}  // namespace roci
