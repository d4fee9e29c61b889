// Check that memory is mapped before it is registered.
#pragma once

#include <cstdint>

#include "base/result.hpp"

namespace roci {

// Fails with EFAULT, as registration in the Linux kernel does, if a byte of the range is in no mapping of the process,
// or in one without the required right: write if `writable`, else read.
// Examines mappings, not pages: it touches no page, and the cost is one query per mapping in the range, also for a
// sparse terabyte. Later changes, and faults that occur only on access, such as beyond the end of a truncated file, are
// handled by the guard (memory_guard.hpp). Succeeds if the system provides no information (no /proc).
Status check_mapped(const void* address, uint64_t length, bool writable);

namespace mapped_range {

// Two implementations. query_kernel() requires Linux 6.11; read_list() reads the list of all mappings. ENOTSUP if the
// system provides no information.
Status query_kernel(uint64_t begin, uint64_t end, bool writable);
Status read_list(uint64_t begin, uint64_t end, bool writable);

}  // namespace mapped_range
}  // namespace roci
