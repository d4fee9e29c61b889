#include "wire/net/nd.hpp"

#include <algorithm>
#include <bit>
#include <cassert>

#include "wire/net/icmp.hpp"

namespace roci {
namespace {

constexpr uint8_t kSolicitationType = 135;
constexpr uint8_t kAdvertisementType = 136;
constexpr uint8_t kSourceLinkLayer = 1;
constexpr uint8_t kTargetLinkLayer = 2;
constexpr uint32_t kRouterFlag = 1U << 31;
constexpr uint32_t kSolicitedFlag = 1U << 30;
constexpr uint32_t kOverrideFlag = 1U << 29;

// Option with a length of one unit of 8 bytes: type, length, address.
struct LinkLayerOption {
  uint8_t type = 0;
  uint8_t units = 1;
  MacAddress mac;
};
static_assert(sizeof(LinkLayerOption) == 8);

// Finds the option of this type in the list. Returns false if the list is malformed.
bool read_options(std::span<const uint8_t> options, uint8_t wanted, std::optional<MacAddress>& found) {
  while (!options.empty()) {
    if (options.size() < 2) return false;
    const size_t size = size_t{options[1]} * 8;
    if (size == 0 || size > options.size()) return false;
    if (options[0] == wanted && size == sizeof(LinkLayerOption)) {
      found = reinterpret_cast<const LinkLayerOption*>(options.data())->mac;
    }
    options = options.subspan(size);
  }
  return true;
}

}  // namespace

std::optional<NeighborMessage> parse_nd(const FrameView& view, std::span<const uint8_t> ip_payload) {
  if (view.kind != FrameKind::kIpv6 || view.ip6().next_header != kProtocolIcmpv6 ||
      view.ip6().hop_limit != kNdHopLimit || ip_payload.size() < sizeof(NeighborHeader)) {
    return std::nullopt;
  }
  const auto& nd = *reinterpret_cast<const NeighborHeader*>(ip_payload.data());
  if ((nd.type != kSolicitationType && nd.type != kAdvertisementType) || nd.code != 0) return std::nullopt;
  if (icmpv6_checksum(view.ip6(), ip_payload) != 0) return std::nullopt;
  NeighborMessage message;
  message.advertisement = nd.type == kAdvertisementType;
  message.source = view.source_ip();
  message.destination = view.destination_ip();
  message.target = IpAddress{nd.target};
  if (message.target.is_multicast() || message.source.is_multicast()) return std::nullopt;
  const uint8_t option = message.advertisement ? kTargetLinkLayer : kSourceLinkLayer;
  if (!read_options(ip_payload.subspan(sizeof(NeighborHeader)), option, message.link_layer))
    return std::nullopt;
  if (message.advertisement) {
    const uint32_t flags = nd.flags.get();
    message.router = (flags & kRouterFlag) != 0;
    message.solicited = (flags & kSolicitedFlag) != 0;
    message.override_cache = (flags & kOverrideFlag) != 0;
    if (message.solicited && message.destination.is_multicast()) return std::nullopt;
  } else if (message.source.is_zero()) {
    // A duplicate address probe is sent to the solicited-node group, without the link-layer address of its sender.
    if (message.destination != message.target.solicited_node() || message.link_layer) return std::nullopt;
  }
  return message;
}

uint32_t nd_frame_length(const LinkHeader& link, const NeighborMessage& message) {
  return link.size() + static_cast<uint32_t>(sizeof(Ipv6Header) + sizeof(NeighborHeader) +
                                             (message.link_layer ? sizeof(LinkLayerOption) : 0));
}

uint32_t build_nd(const LinkHeader& link, const NeighborMessage& message, std::span<uint8_t> out) {
  const uint32_t length = nd_frame_length(link, message);
  const auto nd_bytes = static_cast<uint16_t>(length - link.size() - sizeof(Ipv6Header));
  assert(out.size() >= length);
  link.write(out.data(), kEtherTypeIpv6);
  uint8_t* at = out.data() + link.size();
  auto& ip = *reinterpret_cast<Ipv6Header*>(at);
  ip = Ipv6Header{};
  ip.version_class_flow.set(6U << 28);
  ip.payload_length.set(nd_bytes);
  ip.next_header = kProtocolIcmpv6;
  ip.hop_limit = kNdHopLimit;
  ip.source = message.source.bytes;
  ip.destination = message.destination.bytes;
  at += sizeof(Ipv6Header);
  auto& nd = *reinterpret_cast<NeighborHeader*>(at);
  nd = NeighborHeader{};
  nd.type = message.advertisement ? kAdvertisementType : kSolicitationType;
  if (message.advertisement) {
    nd.flags.set((message.router ? kRouterFlag : 0) | (message.solicited ? kSolicitedFlag : 0) |
                 (message.override_cache ? kOverrideFlag : 0));
  }
  nd.target = message.target.bytes;
  if (message.link_layer) {
    auto& option = *reinterpret_cast<LinkLayerOption*>(at + sizeof(NeighborHeader));
    option =
        LinkLayerOption{message.advertisement ? kTargetLinkLayer : kSourceLinkLayer, 1, *message.link_layer};
  }
  nd.checksum = std::bit_cast<Be16>(icmpv6_checksum(ip, {at, nd_bytes}));
  return length;
}

}  // namespace roci
