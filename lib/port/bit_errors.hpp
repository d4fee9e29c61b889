// Bit errors of a wire, for the simulated link (sim_way.hpp) and for faults that are injected on purpose
// (faulty_port.hpp).
#pragma once

#include <rte_mbuf.h>

#include "base/rng.hpp"

namespace roci {

// At most so many bits of a frame are flipped at a time.
inline constexpr unsigned kMostBitErrors = 64;

// Whether nobody else sees the frame's memory, so that it may be changed.
bool is_private(const rte_mbuf* frame);
// The frame when it is private, else a copy in its place; null, and the frame freed, when there is no buffer for one, or
// no pool to take it from.
rte_mbuf* own_frame(rte_mbuf* frame, rte_mempool* copies);

// Flips one bit of a private frame, wherever in the chain it lies; bit 0 is the lowest of byte 0.
void flip_bit(rte_mbuf* frame, uint32_t bit);
// Flips 1 to `most` different bits of a private frame behind the Ethernet header. Returns whether it had any.
bool flip_random_bits(rte_mbuf* frame, unsigned most, Rng& rng);

}  // namespace roci
