#include "wire/net/link_tags.hpp"

#include "wire/headers/header_at.hpp"

namespace roci {
namespace {

constexpr uint32_t kTagsAt = 2 * sizeof(MacAddress);

constexpr bool is_vlan_tag(uint16_t ether_type) {
  return ether_type == kEtherTypeVlan || ether_type == kEtherTypeSTag;
}
constexpr bool is_tag(uint16_t ether_type) {
  return is_vlan_tag(ether_type) || ether_type == kEtherTypeCnTag;
}

struct Ports {
  Be16 source, destination;
};

void read_ports(std::span<const uint8_t> head, uint32_t offset, FiveTuple& tuple) {
  if (tuple.protocol != kProtocolUdp && tuple.protocol != kProtocolTcp) return;
  if (head.size() < offset + sizeof(Ports)) return;
  const auto& ports = header_at<Ports>(head, offset);
  tuple.source_port = ports.source.get();
  tuple.destination_port = ports.destination.get();
}

std::optional<FiveTuple> read_ipv4_tuple(std::span<const uint8_t> head, uint32_t offset) {
  if (head.size() < offset + sizeof(Ipv4Header)) return std::nullopt;
  const auto& ip = header_at<Ipv4Header>(head, offset);
  const uint32_t header = (ip.version_ihl & 0xfU) * 4;
  if (ip.version_ihl >> 4 != 4 || header < sizeof(Ipv4Header)) return std::nullopt;
  FiveTuple tuple{IpAddress::from_v4(ip.source.get()), IpAddress::from_v4(ip.destination.get()), ip.protocol};
  if ((ip.flags_fragment.get() & 0x3fff) == 0) read_ports(head, offset + header, tuple);
  return tuple;
}

std::optional<FiveTuple> read_ipv6_tuple(std::span<const uint8_t> head, uint32_t offset) {
  if (head.size() < offset + sizeof(Ipv6Header)) return std::nullopt;
  const auto& ip = header_at<Ipv6Header>(head, offset);
  if (ip.version_class_flow.get() >> 28 != 6) return std::nullopt;
  FiveTuple tuple{IpAddress{ip.source}, IpAddress{ip.destination}, ip.next_header};
  if (tuple.source.is_v4() || tuple.destination.is_v4()) return std::nullopt;
  read_ports(head, offset + static_cast<uint32_t>(sizeof(Ipv6Header)), tuple);
  return tuple;
}

}  // namespace

void LinkTags::write(uint8_t* out) const {
  for (unsigned i = 0; i < vlan_count; ++i) {
    const std::array<Be16, 2> tag{Be16{vlan[i].tpid}, Be16{vlan[i].tci}};
    std::memcpy(out, &tag, sizeof tag);
    out += sizeof tag;
  }
  if (!flow) return;
  const CnTag tag{Be16{kEtherTypeCnTag}, Be16{*flow}};
  std::memcpy(out, &tag, sizeof tag);
}

std::optional<TaggedFrame> parse_link_tags(std::span<const uint8_t> head) {
  TaggedFrame frame;
  LinkTags& tags = frame.tags;
  uint32_t offset = kTagsAt;
  while (head.size() >= offset + sizeof(Be16)) {
    const uint16_t type = header_at<Be16>(head, offset).get();
    const bool vlan = is_vlan_tag(type) && tags.vlan_count < kMaxVlanTags && !tags.flow;
    const bool cn = type == kEtherTypeCnTag && !tags.flow;
    if (!vlan && !cn) {
      frame.ether_type = type;
      frame.msdu_offset = offset;
      return frame;
    }
    if (head.size() < offset + sizeof(CnTag)) return std::nullopt;
    const uint16_t value = header_at<CnTag>(head, offset).flow.get();
    if (vlan) {
      tags.vlan[tags.vlan_count++] = {type, value};
    } else {
      tags.flow = value;
    }
    offset += static_cast<uint32_t>(sizeof(CnTag));
  }
  return std::nullopt;
}

std::optional<FiveTuple> read_five_tuple(std::span<const uint8_t> head) {
  const auto frame = parse_link_tags(head);
  if (!frame) return std::nullopt;
  if (frame->ether_type == kEtherTypeIpv4) return read_ipv4_tuple(head, frame->l3_offset());
  if (frame->ether_type == kEtherTypeIpv6) return read_ipv6_tuple(head, frame->l3_offset());
  return std::nullopt;
}

std::string_view cn_tag_edit_name(CnTagEdit edit) {
  constexpr std::string_view kNames[kCnTagEditCount] = {"done",   "truncated", "present",
                                                        "absent", "misplaced", "no headroom"};
  return kNames[static_cast<unsigned>(edit)];
}

CnTagEdit insert_cn_tag(FrameFront& frame, uint16_t flow) {
  const auto tagged = parse_link_tags(frame.head());
  if (!tagged) return CnTagEdit::kTruncated;
  if (tagged->tags.flow) return CnTagEdit::kPresent;
  if (!frame.open_gap(tagged->msdu_offset, sizeof(CnTag))) return CnTagEdit::kNoHeadroom;
  const CnTag tag{Be16{kEtherTypeCnTag}, Be16{flow}};
  std::memcpy(frame.data + tagged->msdu_offset, &tag, sizeof tag);
  return CnTagEdit::kDone;
}

CnTagEdit remove_cn_tag(FrameFront& frame) {
  const auto tagged = parse_link_tags(frame.head());
  if (!tagged) return CnTagEdit::kTruncated;
  if (!tagged->tags.flow) return CnTagEdit::kAbsent;
  if (is_tag(tagged->ether_type)) return CnTagEdit::kMisplaced;
  frame.close_gap(tagged->msdu_offset - static_cast<uint32_t>(sizeof(CnTag)), sizeof(CnTag));
  return CnTagEdit::kDone;
}

void put_cn_tag(rte_mbuf& frame, uint32_t l3_offset, uint16_t flow) {
  auto* to = reinterpret_cast<uint8_t*>(rte_pktmbuf_prepend(&frame, sizeof(CnTag)));
  if (to == nullptr) return;
  const uint32_t front = l3_offset - static_cast<uint32_t>(sizeof(Be16));
  std::memmove(to, to + sizeof(CnTag), front);
  const CnTag tag{Be16{kEtherTypeCnTag}, Be16{flow}};
  std::memcpy(to + front, &tag, sizeof tag);
}

}  // namespace roci
