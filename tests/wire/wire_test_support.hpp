// What the tests of the wire layer share.
#pragma once

#include <string_view>
#include <vector>

#include "base/rng.hpp"
#include "wire/packet.hpp"

namespace roci::test {

// Blanks are skipped.
ByteVector from_hex(std::string_view text);

ByteVector random_bytes(Rng& rng, size_t length);

// A finished packet of this opcode with a random value in every field, a payload of `payload_length` with its
// pad, `vlan_tags` tags, and sometimes an extension block.
Packet random_packet(Rng& rng, Opcode opcode, bool ipv6, unsigned vlan_tags, size_t payload_length);

// Payload lengths that an opcode may carry on a path MTU of 4096, edges first.
std::vector<size_t> payload_lengths(const OpcodeInfo& info);

// A block with a random choice of values, at least one, INT-ECHO with up to kMaxIntHops hops.
ExtensionBlock random_extensions(Rng& rng);

inline FrameView parse(const ByteVector& frame) {
  const auto length = static_cast<uint32_t>(frame.size());
  return parse_frame(frame.data(), length, length, OpcodeRange::kWithPrivate);
}

}  // namespace roci::test
