// Values of the verbs for remote flush (IBTA annex A19) that are not part of the C++ API (roci/flush.hpp).
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

#include "roci/flush.hpp"

namespace roci {

inline constexpr int kAccessFlushPersistent = 1 << 9;  // of ibv_access_flags
inline constexpr uint8_t kFlushTypePersistent = 2;     // of ibv_placement_type

inline constexpr uint64_t kQpExWithFlush = 1U << 11;

// Bits of ibv_device_attr_ex.device_cap_flags_ex.
inline constexpr uint64_t kDeviceFlushGlobal = uint64_t{1} << 38;
inline constexpr uint64_t kDeviceAtomicWrite = uint64_t{1} << 40;

}  // namespace roci
