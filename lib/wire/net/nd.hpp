// IPv6 neighbor solicitations and advertisements (RFC 4861 §4.3, §4.4).
#pragma once

#include <optional>
#include <span>

#include "wire/net/link_header.hpp"
#include "wire/roce/frame.hpp"

namespace roci {

inline constexpr uint8_t kNdHopLimit = 255;  // proves that no router has forwarded the message

struct NeighborHeader {
  uint8_t type = 0;
  uint8_t code = 0;
  Be16 checksum;
  Be32 flags;  // in an advertisement: router, solicited, override, 29 reserved bits
  std::array<uint8_t, 16> target{};
};
static_assert(sizeof(NeighborHeader) == 24);

struct NeighborMessage {
  bool advertisement = false;
  IpAddress source;       // of the IP header; all zero (unspecified) in duplicate address detection
  IpAddress destination;  // of the IP header
  IpAddress target;
  // Link-layer address of the source (solicitation) or of the target (advertisement).
  std::optional<MacAddress> link_layer;
  // The following three are used in advertisements only.
  bool router = false;
  bool solicited = false;
  bool override_cache = false;
};

// `ip_payload` is the payload of the IPv6 header, with the length that the header specifies. Returns null if the
// message is neither a solicitation nor an advertisement, or fails a check of RFC 4861 §7.1.
std::optional<NeighborMessage> parse_nd(const FrameView& view, std::span<const uint8_t> ip_payload);

uint32_t nd_frame_length(const LinkHeader& link, const NeighborMessage& message);
// Writes a complete frame and returns its length.
uint32_t build_nd(const LinkHeader& link, const NeighborMessage& message, std::span<uint8_t> out);

}  // namespace roci
