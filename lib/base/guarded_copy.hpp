// memcpy() from or to memory that may not be there (guarded_access.hpp).
#pragma once

#include <cstddef>
#include <cstdint>

namespace roci {

// Whether all was copied is for the caller to ask, with take_memory_fault(). The ranges must not overlap.
void guarded_copy(uint8_t* to, const uint8_t* from, size_t length);

}  // namespace roci
