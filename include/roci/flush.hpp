// Remote flush (IBTA annex A19): values of the verbs that headers of rdma-core before version 48 lack, and the work
// request. Part of roci/device.hpp.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

namespace roci {

// A flush completes when earlier WRITEs, SENDs and atomics of the queue pair are visible in the memory of the peer. RC
// only. ibv_wr_opcode and ibv_wc_opcode:
inline constexpr auto kWrFlush = static_cast<ibv_wr_opcode>(14);
inline constexpr auto kWcFlush = static_cast<ibv_wc_opcode>(IBV_WC_ATOMIC_WRITE - 1);

// ibv_access_flags: permits peers to flush the region.
inline constexpr int kAccessFlushGlobal = 1 << 8;

// ibv_placement_type: visibility to all threads and devices. Persistence is not implemented.
inline constexpr uint8_t kFlushTypeGlobal = 1;

// ibv_selectivity_level: `length` bytes, or the whole region.
inline constexpr uint8_t kFlushRange = 0;
inline constexpr uint8_t kFlushRegion = 1;

// Makes `wr` a flush of the peer's region `rkey`. The other fields of `wr` are the caller's; it has no scatter list.
inline void set_flush(ibv_send_wr& wr, uint64_t address, uint64_t length, uint32_t rkey,
                      uint8_t level = kFlushRange, uint8_t type = kFlushTypeGlobal) {
  wr.opcode = kWrFlush;
  // FETH: 26 reserved bits, 2 of the selectivity level, 4 of the placement type.
  wr.imm_data = (type & 0xfU) | (level & 3U) << 4;
  wr.wr.atomic.remote_addr = address;
  wr.wr.atomic.compare_add = length;
  wr.wr.atomic.rkey = rkey;
}

}  // namespace roci
