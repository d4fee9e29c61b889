// Bit errors of a wire, for the simulated link (sim_channel.hpp) and for fault injection (faulty_port.hpp).
#pragma once

#include <rte_mbuf.h>

#include "base/rng.hpp"

namespace roci {

// Maximum number of bits of a frame that are flipped at once.
inline constexpr unsigned kMaxBitErrors = 64;

// Whether the frame's memory has no other reference, so that it may be modified.
bool is_private(const rte_mbuf* frame);
// Returns the frame if it is private, else a copy from `copies`, and frees the original. Null, with the frame freed, if
// `copies` is null or has no free buffer.
rte_mbuf* own_frame(rte_mbuf* frame, rte_mempool* copies);

// Flips one bit of a private frame, in any segment of the chain. Bit 0 is the lowest bit of byte 0.
void flip_bit(rte_mbuf* frame, uint32_t bit);
// Flips 1 to `most` different bits of a private frame after the Ethernet header.
// Returns false if the frame has no such bits or `most` is 0.
bool flip_random_bits(rte_mbuf* frame, unsigned most, Rng& rng);

}  // namespace roci
