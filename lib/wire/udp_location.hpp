// Where the UDP header of a frame lies, for what switches do with UDP packets that parse_frame() does not know. Behind up
// to two VLAN tags and a CN-TAG, in IPv4 with or without options, or in IPv6 without extension headers.
#pragma once

#include <cstdint>
#include <span>

#include "wire/headers.hpp"

namespace roci {

enum class UdpOutcome : uint8_t {
  kFound,
  kNotUdp,     // another EtherType or protocol
  kTruncated,  // the front is cut, or the frame is shorter than its IP header says
  kBadIp,      // version or header length wrong, or a length below its headers
  kFragment,   // of which only the first has a UDP header, and none the whole length
  kBadUdp,     // length disagrees with IP
};

struct UdpLocation {
  UdpOutcome outcome = UdpOutcome::kNotUdp;
  bool ipv6 = false;
  uint32_t l3_offset = 0;  // of the IP header
  uint32_t l4_offset = 0;  // of the UDP header
  uint32_t end = 0;        // of the IP packet; behind it may be Ethernet padding

  [[nodiscard]] uint32_t ip_bytes() const { return end - l3_offset; }
  // Of the IP header in the head that this was found in.
  [[nodiscard]] uint8_t dscp(std::span<const uint8_t> head) const {
    const uint8_t* ip = head.data() + l3_offset;
    return static_cast<uint8_t>(ipv6 ? (ip[0] & 0xfU) << 2 | ip[1] >> 6 : ip[1] >> 2);
  }
};

// `head` is the first segment of a frame of `frame_length` bytes; the UDP header must lie in it. Checksums are not
// looked at: a switch hands on what is damaged as damaged.
UdpLocation find_udp(std::span<const uint8_t> head, uint32_t frame_length);

}  // namespace roci
