// What the tests of the wire layer share.
#pragma once

#include <algorithm>
#include <string_view>
#include <vector>

#include "base/rng.hpp"
#include "wire/frame_front.hpp"
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

// A frame of its own memory with free bytes in front, for edits in place. Behind it there are none, so that a sanitizer
// sees who goes beyond it.
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
