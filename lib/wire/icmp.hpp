// ICMP and ICMPv6 echo (RFC 792, RFC 4443 §4), so that a host of ours answers ping.
#pragma once

#include <optional>
#include <span>

#include "wire/frame.hpp"
#include "wire/link_header.hpp"

namespace roci {

struct IcmpHeader {
  uint8_t type = 0;
  uint8_t code = 0;
  Be16 checksum;
};
static_assert(sizeof(IcmpHeader) == 4);

struct EchoMessage {
  bool reply = false;
  IpAddress source;  // both of one family, which says whether it is ICMP or ICMPv6
  IpAddress destination;
  uint8_t traffic_class = 0;
  std::span<const uint8_t> body;  // identifier, sequence number and data; lies in the parsed frame
};

// The ICMPv6 checksum (RFC 4443 §2.3) of a message whose checksum field is included, ready to be stored as it
// lies in memory: 0 over a message that is right.
uint16_t icmpv6_checksum(const Ipv6Header& ip, std::span<const uint8_t> message);

// `ip_payload` is what follows the IP header of a frame of kind kIpv4 or kIpv6, as far as the IP header says.
// Null when it is no echo message or its checksum is wrong.
std::optional<EchoMessage> parse_echo(const FrameView& view, std::span<const uint8_t> ip_payload);

// The answer to a request.
EchoMessage echo_reply_to(const EchoMessage& request);

// The length of the frame that build_echo() writes.
uint32_t echo_frame_length(const LinkHeader& link, const EchoMessage& message);
// Writes a whole frame, whose length must fit, and returns it.
uint32_t build_echo(const LinkHeader& link, const EchoMessage& message, std::span<uint8_t> out);

}  // namespace roci
