// memcpy() from or to memory that may be unmapped (guarded_access.hpp).
#pragma once

#include <cstddef>
#include <cstdint>

namespace roci {

// The caller checks with take_memory_fault() whether everything was copied. The ranges must not overlap.
void guarded_copy(uint8_t* to, const uint8_t* from, size_t length);

}  // namespace roci
