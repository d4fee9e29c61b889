#include "switch/frame_edit.hpp"

#include <algorithm>
#include <cstring>

#include "wire/headers.hpp"
#include "wire/link_tags.hpp"

namespace roci {
namespace {

constexpr uint32_t kAddressBytes = 12;  // destination and source, in front of the tag

VlanHeader* tag_of(rte_mbuf* frame) {
  return rte_pktmbuf_mtod_offset(frame, VlanHeader*, sizeof(EthernetHeader));
}

void pop_tag(rte_mbuf* frame) {
  auto* front = rte_pktmbuf_mtod(frame, uint8_t*);
  std::memmove(front + sizeof(VlanHeader), front, kAddressBytes);
  rte_pktmbuf_adj(frame, sizeof(VlanHeader));
}

void push_tag(rte_mbuf* frame, uint16_t vlan) {
  auto* front = reinterpret_cast<uint8_t*>(rte_pktmbuf_prepend(frame, sizeof(VlanHeader)));
  if (front == nullptr) return;  // cannot be: own_front() has made the headroom
  std::memmove(front, front + sizeof(VlanHeader), kAddressBytes);
  const Be16 type{kEtherTypeVlan}, tci{vlan};
  std::memcpy(front + kAddressBytes, &type, sizeof type);
  std::memcpy(front + kAddressBytes + sizeof type, &tci, sizeof tci);
}

}  // namespace

rte_mbuf* own_front(rte_mbuf* frame, uint32_t headroom, rte_mempool* pool) {
  const bool mine = RTE_MBUF_DIRECT(frame) && rte_mbuf_refcnt_read(frame) == 1;
  const bool whole = frame->data_len >= std::min(kSwitchHeaderBytes, frame->pkt_len);
  if (mine && whole && rte_pktmbuf_headroom(frame) >= headroom) return frame;
  rte_mbuf* copy = rte_pktmbuf_copy(frame, pool, 0, UINT32_MAX);
  rte_pktmbuf_free(frame);
  return copy;
}

TagView read_tag(const rte_mbuf* frame) {
  if (frame->data_len < sizeof(EthernetHeader) + sizeof(VlanHeader)) return {};
  if (rte_pktmbuf_mtod(frame, const EthernetHeader*)->ether_type.get() != kEtherTypeVlan) return {};
  const auto* tag = rte_pktmbuf_mtod_offset(frame, const VlanHeader*, sizeof(EthernetHeader));
  return {true, static_cast<uint16_t>(tag->tci.get() & 0xfff)};
}

uint32_t length_with_tag(const rte_mbuf* frame, bool tagged) {
  constexpr uint32_t kTag = sizeof(VlanHeader);
  const TagView tag = read_tag(frame);
  if (tagged) return tag.present ? frame->pkt_len : frame->pkt_len + kTag;
  return tag.present && tag.vid != 0 ? frame->pkt_len - kTag : frame->pkt_len;
}

rte_mbuf* set_tag(rte_mbuf* frame, bool tagged, uint16_t vlan, rte_mempool* pool) {
  const TagView tag = read_tag(frame);
  const bool pop = !tagged && tag.present && tag.vid != 0;
  const bool push = tagged && !tag.present;
  const bool rename = tagged && tag.present && tag.vid != vlan;
  if (!pop && !push && !rename) return frame;
  frame = own_front(frame, push ? sizeof(VlanHeader) : 0, pool);
  if (frame == nullptr) return nullptr;
  if (pop) pop_tag(frame);
  if (push) push_tag(frame, vlan);
  if (rename) {
    VlanHeader* header = tag_of(frame);
    header->tci.set(static_cast<uint16_t>((header->tci.get() & 0xf000) | vlan));
  }
  return frame;
}

rte_mbuf* strip_cn_tag(rte_mbuf* frame, rte_mempool* pool) {
  frame = own_front(frame, 0, pool);
  if (frame == nullptr) return nullptr;
  FrameFront front = FrameFront::of(*frame);
  if (remove_cn_tag(front) == CnTagEdit::kDone) front.store(*frame);
  return frame;
}

}  // namespace roci
