// The invariant CRC of RoCEv2 (annex A17.3): CRC-32 over eight 0xff bytes, the IP, UDP and BTH headers with the
// fields that change on the way set to ones (IPv4 TOS, TTL and checksum; IPv6 traffic class, flow label and hop
// limit; UDP checksum; FECN, BECN and the six bits behind them), and everything behind the BTH including the pad.
// Stored little-endian.
#pragma once

#include <rte_mbuf.h>

#include <cstdint>

#include "wire/frame.hpp"

namespace roci {

// The CRC register after the eight 0xff bytes and the masked headers of `view`, in the form that icrc_continue() and
// icrc_finish() take.
uint32_t icrc_headers(const FrameView& view);
uint32_t icrc_continue(uint32_t state, const uint8_t* data, size_t length);
constexpr uint32_t icrc_finish(uint32_t state) { return state; }

// The right ICRC of a frame that lies in one piece.
uint32_t compute_icrc(const FrameView& view);
// The same as one CRC from front to back, which is how long frames are done, and all on processors without
// carry-less products.
uint32_t compute_icrc_in_order(const FrameView& view);
// The same with the payload being copied to `to` in one pass. Worthwhile as copy_crc() is. Means nothing when an access to
// `to` has faulted (base/guarded_access.hpp).
uint32_t compute_icrc_copying(const FrameView& view, uint8_t* to);
// The same for a chain of segments; the headers up to the payload must lie in the first.
uint32_t compute_icrc(const FrameView& view, const rte_mbuf* chain);

// The ICRC that the frame carries.
uint32_t stored_icrc(const FrameView& view);
uint32_t stored_icrc(const FrameView& view, const rte_mbuf* chain);
inline void store_icrc(uint8_t* where, uint32_t icrc) {
  for (unsigned i = 0; i < kIcrcBytes; ++i) where[i] = static_cast<uint8_t>(icrc >> (8 * i));
}

}  // namespace roci
