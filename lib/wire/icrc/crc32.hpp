// CRC-32 without ISA-L, for builds that link no shared libraries (ROCI_PORTABLE).
#pragma once

#include <cstddef>
#include <cstdint>

namespace roci {

// Continues a CRC, as crc32_gzip_refl() of ISA-L does: `state` is the CRC of the bytes before, 0 at the start. Uses
// PCLMULQDQ if the processor has it.
uint32_t crc32_continue(uint32_t state, const uint8_t* data, size_t length);

// The same with tables only.
uint32_t crc32_continue_with_tables(uint32_t state, const uint8_t* data, size_t length);

}  // namespace roci
