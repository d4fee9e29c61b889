// What a thread may ask of the scheduler without privileges.
#pragma once

#include <sys/types.h>

#include "base/types.hpp"

namespace roci {

// Asks for a short time slice of the calling thread: when it becomes runnable it then runs before threads that have used up more of
// theirs, which spin for example. Linux 6.12 and later (EEVDF); elsewhere the highest nice value that the process may have, if any.
// Returns whether either was granted.
bool request_short_slice(Nanos slice);

// Whether the process is stopped by a signal or a debugger. False when that cannot be read.
bool is_stopped(pid_t process);

// What a thread of this process did lately.
struct ThreadTime {
  Nanos ran{0};          // processor time since it started
  bool runnable = true;  // it runs or waits for a processor; false: it is blocked, or has ended
};
ThreadTime time_of_thread(pid_t thread);

// For how long the calling thread has been runnable and has not run, since it started; 0 where the kernel does not report it.
Nanos own_wait_time();

}  // namespace roci
