#include "port/shm/shm_resolution.hpp"

#include <algorithm>

#include "wire/net/arp.hpp"
#include "wire/net/nd.hpp"
#include "wire/roce/frame.hpp"

namespace roci {
namespace {

uint32_t owner_of(const IpAddress& ip, std::span<const SlotAddresses> slots) {
  for (uint32_t slot = 0; slot < slots.size(); ++slot) {
    if (std::ranges::find(slots[slot].ips, ip) != slots[slot].ips.end()) return slot;
  }
  return UINT32_MAX;
}

ResolutionAnswer answer_arp(const ArpMessage& request, std::span<const SlotAddresses> slots) {
  ResolutionAnswer answer{.is_request = true, .slot = owner_of(request.target_ip, slots)};
  if (answer.slot == UINT32_MAX) return answer;
  const MacAddress mac = slots[answer.slot].mac;
  const ArpMessage reply{ArpOperation::kReply, mac, request.target_ip, request.sender_mac, request.sender_ip};
  answer.frame.resize(kMaxArpFrame);
  answer.frame.resize(build_arp({request.sender_mac, mac}, reply, answer.frame));
  return answer;
}

ResolutionAnswer answer_solicitation(const NeighborMessage& request, const MacAddress& from,
                                     std::span<const SlotAddresses> slots) {
  ResolutionAnswer answer{.is_request = true, .slot = owner_of(request.target, slots)};
  if (answer.slot == UINT32_MAX) return answer;
  const MacAddress mac = slots[answer.slot].mac;
  NeighborMessage reply;
  reply.advertisement = true;
  reply.source = request.target;
  reply.destination = request.source;
  reply.target = request.target;
  reply.link_layer = mac;
  reply.solicited = true;
  reply.override_cache = true;
  const LinkHeader link{from, mac};
  answer.frame.resize(nd_frame_length(link, reply));
  build_nd(link, reply, answer.frame);
  return answer;
}

}  // namespace

ResolutionAnswer answer_resolution(std::span<const uint8_t> head, std::span<const SlotAddresses> slots) {
  if (head.size() < sizeof(EthernetHeader)) return {};
  const auto& ethernet = *reinterpret_cast<const EthernetHeader*>(head.data());
  const std::span<const uint8_t> rest = head.subspan(sizeof(EthernetHeader));
  if (ethernet.ether_type.get() == kEtherTypeArp) {
    const auto arp = parse_arp(rest);
    if (arp && arp->operation == ArpOperation::kRequest && !arp->is_gratuitous())
      return answer_arp(*arp, slots);
    return {};
  }
  if (ethernet.ether_type.get() != kEtherTypeIpv6 || rest.size() < sizeof(Ipv6Header)) return {};
  if (reinterpret_cast<const Ipv6Header*>(rest.data())->next_header != kProtocolIcmpv6) return {};
  const FrameView view =
      parse_frame(head.data(), static_cast<uint32_t>(head.size()), static_cast<uint32_t>(head.size()));
  if (view.kind != FrameKind::kIpv6) return {};
  const auto message = parse_nd(view, rest.subspan(sizeof(Ipv6Header)));
  if (message && !message->advertisement && !message->source.is_zero())
    return answer_solicitation(*message, message->link_layer.value_or(ethernet.source), slots);
  return {};
}

}  // namespace roci
