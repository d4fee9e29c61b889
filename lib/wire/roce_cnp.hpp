// The congestion notification packet of RoCEv2 (annex A17.9.3) as a whole frame, for who sends one now and then and has no
// queue pair: a switch that answers a sender directly (L3QCN 5.2.2).
#pragma once

#include <cstdint>
#include <span>

#include "wire/roce_writer.hpp"

namespace roci {

inline constexpr uint32_t kMaxCnpFrame = 14 + 4 + 40 + 8 + 12 + sizeof(CnpReserved) + kIcrcBytes;

// Writes the frame and returns its length. `path` leads to the sender of the flow, `sender` is its queue pair there: not
// the one that its packets name. 16 bytes of 0 behind the BTH, PSN 0, BECN set; ICRC right, UDP checksum 0.
uint32_t build_cnp(const RocePath& path, Qpn sender, std::span<uint8_t> out, PKey pkey = kDefaultPKey);

}  // namespace roci
