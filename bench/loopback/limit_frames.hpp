// The frames of the limits: what lies around a payload in RoCEv2 over IPv4, and what a ring's ports carry.
#pragma once

#include <cstdint>

namespace roci::bench {

inline constexpr uint16_t kBurst = 32;
inline constexpr uint16_t kMtu = 4200;
inline constexpr uint32_t kHeaders = 14 + 20 + 8 + 12;  // Ethernet, IPv4, UDP, BTH
inline constexpr uint32_t kIcrc = 4;

}  // namespace roci::bench
