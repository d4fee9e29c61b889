// Where the bytes of an area are.
#pragma once

#include "memory/memory_entry.hpp"

namespace roci {

// The byte that is so many behind the first. A sum of numbers: a region of all addresses begins at the null pointer, which may
// not be moved.
[[nodiscard]] inline uint8_t* place_in(const MemoryArea& area, uint64_t offset) {
  return reinterpret_cast<uint8_t*>(reinterpret_cast<uintptr_t>(area.host) + offset);
}

}  // namespace roci
