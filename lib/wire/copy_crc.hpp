// CRC-32 of bytes while they are copied: each byte is loaded once, where a copy and a CRC after it load it twice.
#pragma once

#include <cstddef>
#include <cstdint>

namespace roci {

// Fewer bytes than these are copied and summed one after the other: the end of a CRC costs what is saved before it.
inline constexpr size_t kCopyCrcWorthwhile = 1536;

// Copies `length` bytes and returns the CRC register after them, as icrc_continue(state, from, length) does. The ranges
// must not overlap. `from` may be memory that is not there any more, and so may `to` when copies_in_one_pass() and there are
// kCopyCrcWorthwhile bytes: the accesses are guarded (base/guarded_access.hpp), and the register means nothing after a fault.
// Takes what the processor has: VPCLMULQDQ with AVX-512 or with AVX2, PCLMULQDQ, or ISA-L after memcpy.
uint32_t copy_crc(uint32_t state, uint8_t* to, const uint8_t* from, size_t length);

// Whether that is faster than a CRC first and a copy of what is in the caches then.
bool copies_in_one_pass();

// The ways above, for tests and benchmarks. Null when the processor lacks the instructions.
using CopyCrc = uint32_t (*)(uint32_t state, uint8_t* to, const uint8_t* from, size_t length);
CopyCrc copy_crc_avx512();
CopyCrc copy_crc_avx2();
CopyCrc copy_crc_pclmul();
CopyCrc copy_crc_isal();

}  // namespace roci
