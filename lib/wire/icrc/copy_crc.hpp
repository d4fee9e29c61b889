// CRC-32 of bytes during their copy. Each byte is loaded once; a copy followed by a CRC loads it twice.
#pragma once

#include <cstddef>
#include <cstdint>

namespace roci {

// Shorter data is copied first and summed afterwards, because the end of a CRC costs more than one pass saves.
inline constexpr size_t kCopyCrcWorthwhile = 1536;

// Copies `length` bytes and returns the CRC register after them, as icrc_continue(state, from, length) does. The ranges
// must not overlap. Uses the best instructions of the processor: VPCLMULQDQ with AVX-512 or AVX2, PCLMULQDQ, or memcpy
// and ISA-L.
//
// Accesses are guarded (base/os/guarded_access.hpp): `from` may be unmapped memory. `to` may be unmapped only if
// copies_in_one_pass() and `length` is at least kCopyCrcWorthwhile. After a fault the return value is undefined.
uint32_t copy_crc(uint32_t state, uint8_t* to, const uint8_t* from, size_t length);

// Returns true if copy_crc() is faster than a CRC followed by a copy from the caches.
bool copies_in_one_pass();

// The implementations of copy_crc(), for tests and benchmarks. Null if the processor lacks the instructions.
using CopyCrc = uint32_t (*)(uint32_t state, uint8_t* to, const uint8_t* from, size_t length);
CopyCrc copy_crc_avx512();
CopyCrc copy_crc_avx2();
CopyCrc copy_crc_clmul();
CopyCrc copy_crc_isal();

}  // namespace roci
