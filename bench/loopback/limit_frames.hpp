// Frame sizes of the limit benchmarks: RoCEv2 overhead over IPv4, and the MTU of ring ports.
#pragma once

#include <cstdint>

namespace roci::bench {

inline constexpr uint16_t kBurst = 32;
inline constexpr uint16_t kMtu = 4200;
inline constexpr uint32_t kHeaders = 14 + 20 + 8 + 12;  // Ethernet, IPv4, UDP, BTH
inline constexpr uint32_t kIcrc = 4;

}  // namespace roci::bench
