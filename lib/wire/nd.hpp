// IPv6 neighbour solicitations and advertisements (RFC 4861 §4.3, §4.4).
#pragma once

#include <optional>
#include <span>

#include "wire/frame.hpp"
#include "wire/link_header.hpp"

namespace roci {

inline constexpr uint8_t kNdHopLimit = 255;  // proves that no router forwarded the message

struct NeighbourHeader {
  uint8_t type = 0;
  uint8_t code = 0;
  Be16 checksum;
  Be32 flags;  // advertisement: router, solicited, override; then reserved
  std::array<uint8_t, 16> target{};
};
static_assert(sizeof(NeighbourHeader) == 24);

struct NeighbourMessage {
  bool advertisement = false;
  IpAddress source;       // of the IP header; unspecified (all zero) while a host checks for duplicates
  IpAddress destination;  // of the IP header
  IpAddress target;
  // The source's address in a solicitation, the target's in an advertisement.
  std::optional<MacAddress> link_layer;
  bool router = false;  // these three of an advertisement only
  bool solicited = false;
  bool override_cache = false;
};

// `ip_payload` is what follows the IPv6 header, as far as the IP header says. Null when it is neither message
// or fails one of the checks of RFC 4861 §7.1.
std::optional<NeighbourMessage> parse_nd(const FrameView& view, std::span<const uint8_t> ip_payload);

uint32_t nd_frame_length(const LinkHeader& link, const NeighbourMessage& message);
// Writes a whole frame and returns its length.
uint32_t build_nd(const LinkHeader& link, const NeighbourMessage& message, std::span<uint8_t> out);

}  // namespace roci
