// ICMP and ICMPv6 echo (RFC 792, RFC 4443 §4), to answer ping.
#pragma once

#include <optional>
#include <span>

#include "wire/net/link_header.hpp"
#include "wire/roce/frame.hpp"

namespace roci {

struct IcmpHeader {
  uint8_t type = 0;
  uint8_t code = 0;
  Be16 checksum;
};
static_assert(sizeof(IcmpHeader) == 4);

struct EchoMessage {
  bool reply = false;
  IpAddress source;  // both IPv4 (ICMP) or both IPv6 (ICMPv6)
  IpAddress destination;
  uint8_t traffic_class = 0;
  std::span<const uint8_t> body;  // identifier, sequence number and data; in the parsed frame
};

// Returns the ICMPv6 checksum (RFC 4443 §2.3) of a message including its checksum field, in memory byte order. It is 0
// if the field is correct.
uint16_t icmpv6_checksum(const Ipv6Header& ip, std::span<const uint8_t> message);

// `ip_payload` is the payload of the IP header of a frame of kind kIpv4 or kIpv6, with the length that the header
// specifies. Returns null if it is not an echo message or has a wrong checksum.
std::optional<EchoMessage> parse_echo(const FrameView& view, std::span<const uint8_t> ip_payload);

// Returns the reply to a request.
EchoMessage echo_reply_to(const EchoMessage& request);

// Length of the frame that build_echo() writes.
uint32_t echo_frame_length(const LinkHeader& link, const EchoMessage& message);
// Writes a complete frame and returns its length. `out` must be large enough.
uint32_t build_echo(const LinkHeader& link, const EchoMessage& message, std::span<uint8_t> out);

}  // namespace roci
