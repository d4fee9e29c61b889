// In-band telemetry of a received packet: the hops that switches have written, as extracted by the engine
// (wire/int/telemetry_header.hpp).
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "wire/extensions/extensions.hpp"
#include "wire/int/int_hop.hpp"

namespace roci {

// List of hops.
struct PacketHops {
  uint8_t count = 0;
  bool incomplete = false;               // hops are missing: too many, or switches without support
  std::array<IntHop, kMaxIntHops> hops;  // newest first; only the first `count` are valid

  [[nodiscard]] std::span<const IntHop> all() const { return {hops.data(), count}; }
};

}  // namespace roci
