// Location of the UDP header in a frame, for switch functions on UDP packets that parse_frame() does not cover.
// Supports up to two VLAN tags and a CN-TAG, IPv4 with or without options, and IPv6 without extension headers.
#pragma once

#include <cstdint>
#include <span>

#include "wire/headers/headers.hpp"

namespace roci {

enum class UdpOutcome : uint8_t {
  kFound,
  kNotUdp,     // another EtherType or protocol
  kTruncated,  // the first segment ends too early, or the frame is shorter than its IP length
  kBadIp,      // invalid version or header length, or a length below its headers
  kFragment,   // an IP fragment
  kBadUdp,     // length differs from that of IP
};

struct UdpLocation {
  UdpOutcome outcome = UdpOutcome::kNotUdp;
  bool ipv6 = false;
  uint32_t l3_offset = 0;  // of the IP header
  uint32_t l4_offset = 0;  // of the UDP header
  uint32_t end = 0;        // of the IP packet; Ethernet padding may follow

  [[nodiscard]] uint32_t ip_bytes() const { return end - l3_offset; }
  // DSCP of the IP header. `head` is the argument of find_udp().
  [[nodiscard]] uint8_t dscp(std::span<const uint8_t> head) const {
    const uint8_t* ip = head.data() + l3_offset;
    return static_cast<uint8_t>(ipv6 ? (ip[0] & 0xfU) << 2 | ip[1] >> 6 : ip[1] >> 2);
  }
};

// `head` is the first segment of a frame of `frame_length` bytes and must contain the UDP header. Checksums are not
// checked, because a switch forwards damaged packets unchanged.
UdpLocation find_udp(std::span<const uint8_t> head, uint32_t frame_length);

}  // namespace roci
