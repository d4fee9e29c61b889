// What switches have written into a packet on its way, as the engine took it out of it (wire/telemetry_header.hpp).
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "wire/extensions.hpp"
#include "wire/int_hop.hpp"

namespace roci {

struct PacketHops {
  uint8_t count = 0;
  bool incomplete = false;               // there were more, or switches that could not or did not say
  std::array<IntHop, kMaxIntHops> hops;  // newest first; only `count` of them are written

  [[nodiscard]] std::span<const IntHop> all() const { return {hops.data(), count}; }
};

}  // namespace roci
