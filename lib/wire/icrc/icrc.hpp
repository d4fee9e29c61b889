// Invariant CRC of RoCEv2 (annex A17.3). It is a CRC-32 over eight 0xff bytes, the IP, UDP and BTH headers, and all
// bytes after the BTH including the pad. Header fields that change in transit are replaced with ones: IPv4 TOS, TTL and
// checksum; IPv6 traffic class, flow label and hop limit; UDP checksum; FECN, BECN and the six bits after them. Stored
// in little-endian byte order.
#pragma once

#include <rte_mbuf.h>

#include <cstdint>

#include "wire/roce/frame.hpp"

namespace roci {

// Returns the CRC register after the eight 0xff bytes and the masked headers of `view`, in the form that
// icrc_continue() and icrc_finish() accept.
uint32_t icrc_headers(const FrameView& view);
uint32_t icrc_continue(uint32_t state, const uint8_t* data, size_t length);
constexpr uint32_t icrc_finish(uint32_t state) { return state; }

// Computes the ICRC of a contiguous frame.
uint32_t compute_icrc(const FrameView& view);
// As above, as one CRC from start to end. Used for long frames, for IPv4 options, and on processors without carry-less
// products.
uint32_t compute_icrc_in_order(const FrameView& view);
// As above, and copies the payload to `to` in one pass, for lengths as in copy_crc(). The result is undefined if an
// access to `to` has faulted (base/os/guarded_access.hpp).
uint32_t compute_icrc_copying(const FrameView& view, uint8_t* to);
// As above for a chain of segments. The headers up to the payload must be in the first segment.
uint32_t compute_icrc(const FrameView& view, const rte_mbuf* chain);

// The ICRC stored in the frame.
uint32_t stored_icrc(const FrameView& view);
uint32_t stored_icrc(const FrameView& view, const rte_mbuf* chain);
inline void store_icrc(uint8_t* where, uint32_t icrc) {
  for (unsigned i = 0; i < kIcrcBytes; ++i) where[i] = static_cast<uint8_t>(icrc >> (8 * i));
}

}  // namespace roci
