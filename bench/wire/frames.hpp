// Frames for the benchmarks.
#pragma once

#include <cstdint>
#include <vector>

#include "wire/roce/packet.hpp"

namespace roci::bench {

inline std::vector<uint8_t> some_bytes(size_t count) {
  std::vector<uint8_t> bytes(count);
  for (size_t i = 0; i < count; ++i) bytes[i] = static_cast<uint8_t>(i * 37);
  return bytes;
}

inline Packet some_packet(Opcode opcode, int64_t payload, bool ipv6 = false) {
  return make_packet(opcode, ipv6).with_payload(some_bytes(static_cast<size_t>(payload))).finish();
}

inline FrameView view_of(const ByteVector& frame) {
  const auto length = static_cast<uint32_t>(frame.size());
  return parse_frame(frame.data(), length, length);
}

// The bytes covered by the ICRC: from the IP header to the pad.
inline int64_t covered_bytes(const FrameView& view) { return view.icrc_offset - view.l3_offset; }

}  // namespace roci::bench
