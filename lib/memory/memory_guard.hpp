// The handler of SIGSEGV and SIGBUS that makes a guarded access (base/guarded_access.hpp) to memory that is gone a refused
// copy instead of the end of the program.
//
// It is one for the process and goes by the instruction that faulted, nothing else: what is in the table it lets go on,
// whoever's thread it is and whatever the address (one that no memory can have included, whose fault tells no address).
// Every other fault, and a signal that somebody sent, goes to the handler that was there before, with the flags and the mask
// that it had asked for, be it a debugger's, AddressSanitizer's or a virtual machine's; or to the system, when there was none.
//
// Who installs a handler afterwards is asked first. One that hands on what is not its own, to whoever it found, keeps the
// guard working; one that does not takes it away. UCX and others keep sigaction() to themselves, so libc's own is used.
#pragma once

#include "base/result.hpp"

namespace roci {

// Installs it, the first time; it stays until the process ends. Fails when the system does not take it, and under
// ThreadSanitizer, where nothing is guarded. Any thread.
Status install_memory_guard();

}  // namespace roci
