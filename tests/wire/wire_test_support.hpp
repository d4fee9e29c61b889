// Helpers of the wire tests.
#pragma once

#include <algorithm>
#include <string_view>
#include <vector>

#include "base/rng.hpp"
#include "wire/net/frame_front.hpp"
#include "wire/roce/packet.hpp"

namespace roci::test {

// Bits of all extension types, also of undefined ones.
inline constexpr uint16_t kAllExtensions = 0xffff;

// Spaces are ignored.
ByteVector from_hex(std::string_view text);

ByteVector random_bytes(Rng& rng, size_t length);

// A finished packet of this opcode with random values in all fields, a payload of `payload_length` bytes with
// padding, `vlan_tags` tags, and sometimes an extension block.
Packet random_packet(Rng& rng, Opcode opcode, bool ipv6, unsigned vlan_tags, size_t payload_length);

// Payload lengths that an opcode permits at a path MTU of 4096, limits first.
std::vector<size_t> payload_lengths(const OpcodeInfo& info);

IntHopValues random_hop(Rng& rng);

// A block with at least one random value; INT-ECHO has up to kMaxIntHops hops.
ExtensionBlock random_extensions(Rng& rng);

// A frame in memory of its own with headroom, for edits in place. It ends at the end of its allocation, so that a
// sanitizer detects accesses beyond it.
class RoomyFrame {
 public:
  explicit RoomyFrame(const ByteVector& frame, uint32_t headroom = 128) : memory_(headroom + frame.size()) {
    std::copy(frame.begin(), frame.end(), memory_.begin() + headroom);
    const auto length = static_cast<uint32_t>(frame.size());
    front = {memory_.data() + headroom, length, length, headroom};
  }
  RoomyFrame(const RoomyFrame&) = delete;
  RoomyFrame& operator=(const RoomyFrame&) = delete;
  [[nodiscard]] ByteVector bytes() const { return {front.data, front.data + front.length}; }

  FrameFront front;

 private:
  ByteVector memory_;
};

inline FrameView parse(const ByteVector& frame) {
  const auto length = static_cast<uint32_t>(frame.size());
  return parse_frame(frame.data(), length, length, OpcodeRange::kWithPrivate);
}

}  // namespace roci::test
