#include "switch/pipeline/parse.hpp"

#include "wire/headers/headers.hpp"
#include "wire/net/link_tags.hpp"

namespace roci {
namespace {

// Content of a CN-TAG after its EtherType.
struct CnTagContent {
  Be16 flow;
  Be16 ether_type;  // of the payload
};

// 01:80:c2:00:00:00 to 0f (802.1Q table 8-1).
bool is_link_local(const MacAddress& mac) {
  const auto& b = mac.bytes;
  return b[0] == 0x01 && b[1] == 0x80 && b[2] == 0xc2 && b[3] == 0 && b[4] == 0 && b[5] < 0x10;
}

// A CN-TAG in front of another tag is ignored: without it, the frame would belong to another VLAN.
void read_cn_tag(SwitchPacket& packet, const CnTagContent& tag) {
  const uint16_t type = tag.ether_type.get();
  if (type == kEtherTypeVlan || type == kEtherTypeSTag || type == kEtherTypeCnTag) return;
  packet.has_cn_tag = true;
  packet.cn_flow = tag.flow.get();
  packet.ether_type = type;
  packet.l3_offset += sizeof(CnTag);
}

}  // namespace

DropReason parse(SwitchPacket& packet, uint16_t native, const MacAddress& own) {
  const rte_mbuf* frame = packet.frame;
  if (frame->data_len < sizeof(EthernetHeader)) return DropReason::kRunt;
  const auto& ethernet = *rte_pktmbuf_mtod(frame, const EthernetHeader*);
  packet.ether_type = ethernet.ether_type.get();
  packet.l3_offset = sizeof(EthernetHeader);
  packet.vlan = native;
  if (packet.ether_type == kEtherTypeVlan) {
    if (frame->data_len < sizeof(EthernetHeader) + sizeof(VlanHeader)) return DropReason::kRunt;
    const auto& tag = *rte_pktmbuf_mtod_offset(frame, const VlanHeader*, sizeof(EthernetHeader));
    packet.ether_type = tag.ether_type.get();
    packet.l3_offset += sizeof(VlanHeader);
    const auto vid = static_cast<uint16_t>(tag.tci.get() & 0xfff);
    if (vid != 0) packet.vlan = vid;
  }
  if (packet.ether_type == kEtherTypeCnTag) [[unlikely]] {
    if (frame->data_len < packet.l3_offset + sizeof(CnTag)) return DropReason::kRunt;
    read_cn_tag(packet, *rte_pktmbuf_mtod_offset(frame, const CnTagContent*, packet.l3_offset));
  }
  if (ethernet.source.is_multicast() || ethernet.source.is_zero() || ethernet.source == own) {
    return DropReason::kBadSource;
  }
  return is_link_local(ethernet.destination) ? DropReason::kLinkLocal : DropReason::kNone;
}

}  // namespace roci
