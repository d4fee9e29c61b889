// Whether memory is there to be registered.
#pragma once

#include <cstdint>

#include "base/result.hpp"

namespace roci {

// Fails with EFAULT, as registering does in the Linux kernel, when a byte of the range belongs to no mapping of the process,
// or to one that may not be read, or not be written when `writable`. The mappings are looked at and not the pages: nothing is
// touched, and a sparse terabyte costs what a page does, one question for each mapping that it reaches over. What is no
// longer so afterwards, or is only known when it is touched, like the end of a file that was cut off, is for the guard
// (memory_guard.hpp). Succeeds when the system does not tell (no /proc).
Status check_mapped(const void* address, uint64_t length, bool writable);

namespace mapped_range {

// The two ways to ask. The first is answered by Linux 6.11 and newer; the other reads the list of all mappings. ENOTSUP when
// the system does not answer.
Status ask_kernel(uint64_t begin, uint64_t end, bool writable);
Status read_list(uint64_t begin, uint64_t end, bool writable);

}  // namespace mapped_range
}  // namespace roci
