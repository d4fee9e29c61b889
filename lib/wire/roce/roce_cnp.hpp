// Congestion notification packet of RoCEv2 (annex A17.9.3) as a complete frame, for senders without a queue pair. A
// switch uses it to notify a sender directly (L3QCN 5.2.2).
#pragma once

#include <cstdint>
#include <span>

#include "wire/roce/roce_writer.hpp"

namespace roci {

inline constexpr uint32_t kMaxCnpFrame = 14 + 4 + 40 + 8 + 12 + sizeof(CnpReserved) + kIcrcBytes;

// Writes the frame and returns its length. `path` leads to the sender of the flow. `sender` is the queue pair of that
// sender, not the destination queue pair in its packets. 16 bytes of 0 follow the BTH; PSN 0, BECN set, correct ICRC,
// UDP checksum 0.
uint32_t build_cnp(const RocePath& path, Qpn sender, std::span<uint8_t> out, PKey pkey = kDefaultPKey);

}  // namespace roci
