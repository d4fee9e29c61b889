// Memory for packet buffers where there are no hugepages: private pages beside DPDK's own memory, transparent huge ones
// where the system gives them. DPDK's own would be a shared file, which the system backs with small pages alone.
#pragma once

#include <cstddef>
#include <cstdint>

namespace roci {

// How much all pools of the process may take together. Called by start_eal().
void allow_buffer_memory(uint64_t bytes);

// All-or-nothing, with 0 in it; aligned to a huge page when it is as large as one. Null beyond what is allowed, and when
// the system refuses. Any thread.
void* map_buffer_memory(size_t bytes);
void unmap_buffer_memory(void* memory, size_t bytes);

}  // namespace roci
