// Values of the verbs for remote flush (IBTA annex A19), which headers of rdma-core before version 48 lack.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

namespace roci {

inline constexpr auto kWrFlush = static_cast<ibv_wr_opcode>(14);
inline constexpr auto kWcFlush = static_cast<ibv_wc_opcode>(IBV_WC_ATOMIC_WRITE - 1);

// FETH in host byte order: reserved 26 | selectivity level 2 | placement type 4.
constexpr uint32_t flush_header(uint8_t type, uint8_t level) { return (type & 0xfU) | (level & 3U) << 4; }

// ibv_access_flags.
inline constexpr int kAccessFlushGlobal = 1 << 8;
inline constexpr int kAccessFlushPersistent = 1 << 9;

// ibv_placement_type.
inline constexpr uint8_t kFlushGlobal = 1;
inline constexpr uint8_t kFlushPersistent = 2;

// ibv_selectivity_level.
inline constexpr uint8_t kFlushRange = 0;
inline constexpr uint8_t kFlushRegion = 1;

inline constexpr uint64_t kQpExWithFlush = 1U << 11;

// Bits of ibv_device_attr_ex.device_cap_flags_ex.
inline constexpr uint64_t kDeviceFlushGlobal = uint64_t{1} << 38;
inline constexpr uint64_t kDeviceAtomicWrite = uint64_t{1} << 40;

}  // namespace roci
