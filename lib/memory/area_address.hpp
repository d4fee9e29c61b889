// Address calculation within a memory area.
#pragma once

#include "memory/memory_entry.hpp"

namespace roci {

// Address of the byte at `offset`. Computed with integers: a region of all addresses starts at null, and arithmetic on
// a null pointer is undefined.
[[nodiscard]] inline uint8_t* address_in(const MemoryArea& area, uint64_t offset) {
  return reinterpret_cast<uint8_t*>(reinterpret_cast<uintptr_t>(area.host) + offset);
}

}  // namespace roci
