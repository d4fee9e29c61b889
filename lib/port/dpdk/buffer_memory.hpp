// Memory for packet buffers without hugepages: private pages outside DPDK's memory, transparent huge pages if the
// system provides them. DPDK's memory would be a shared file mapping, for which the system uses small pages only.
#pragma once

#include <cstddef>
#include <cstdint>

#include "port/dpdk/eal.hpp"

namespace roci {

// Sets the limit for all pools of the process together. Called by start_eal().
void allow_buffer_memory(uint64_t bytes);

// Maps zeroed memory, aligned to a huge page if it is at least as large as one. Null if the limit is exceeded or the
// system refuses; there is no partial result. Any thread.
void* map_buffer_memory(size_t bytes);
void unmap_buffer_memory(void* memory, size_t bytes);

}  // namespace roci
