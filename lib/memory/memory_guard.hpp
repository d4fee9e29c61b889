// Handler of SIGSEGV and SIGBUS for guarded accesses (base/os/guarded_access.hpp): an access to unmapped memory fails
// the copy instead of ending the program.
//
// There is one handler per process. It decides only by the faulting instruction: an instruction in the exception table
// continues, in any thread and at any address (a fault at a non-canonical address reports no address).
// All other faults, and signals sent by processes, are passed to the previous handler with the flags and mask that it
// requested, for example a debugger's, AddressSanitizer's or a virtual machine's. Without one, the default action
// applies.
//
// A handler that is installed later is called first. If it passes on the faults that it does not handle, the guard
// continues to work; otherwise the guard has no effect. UCX and others intercept sigaction(), so libc's function is
// called.
#pragma once

#include "base/result.hpp"

namespace roci {

// Installs the handler at the first call; it stays until the process ends. Fails if the system rejects it, and under
// ThreadSanitizer, where accesses are not guarded. May be called by any thread.
Status install_memory_guard();

}  // namespace roci
