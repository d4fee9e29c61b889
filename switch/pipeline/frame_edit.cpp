#include "switch/pipeline/frame_edit.hpp"

#include <algorithm>
#include <cstring>

#include "wire/headers/headers.hpp"
#include "wire/net/link_tags.hpp"
#include "wire/net/rewrite.hpp"

namespace roci {
namespace {

constexpr uint32_t kAddressBytes = 12;  // destination and source MAC, before the tag

VlanHeader* tag_of(rte_mbuf* frame) {
  return rte_pktmbuf_mtod_offset(frame, VlanHeader*, sizeof(EthernetHeader));
}

void pop_tag(rte_mbuf* frame) {
  auto* front = rte_pktmbuf_mtod(frame, uint8_t*);
  std::memmove(front + sizeof(VlanHeader), front, kAddressBytes);
  rte_pktmbuf_adj(frame, sizeof(VlanHeader));
}

void push_tag(rte_mbuf* frame, uint16_t vlan, uint8_t priority) {
  auto* front = reinterpret_cast<uint8_t*>(rte_pktmbuf_prepend(frame, sizeof(VlanHeader)));
  if (front == nullptr) return;  // not reached: own_front() has ensured the headroom
  std::memmove(front, front + sizeof(VlanHeader), kAddressBytes);
  const Be16 type{kEtherTypeVlan}, tci{static_cast<uint16_t>(priority << 13 | vlan)};
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

rte_mbuf* mark_frame(rte_mbuf* frame, rte_mempool* pool) {
  frame = own_front(frame, 0, pool);
  if (frame != nullptr) mark_congestion(rte_pktmbuf_mtod(frame, uint8_t*), frame->data_len);
  return frame;
}

rte_mbuf* edit_tag(rte_mbuf* frame, TagEdit edit, uint16_t vlan, uint8_t priority, rte_mempool* pool) {
  if (edit == TagEdit::kNone) return frame;
  frame = own_front(frame, edit == TagEdit::kPush ? sizeof(VlanHeader) : 0, pool);
  if (frame == nullptr) return nullptr;
  if (edit == TagEdit::kPop) pop_tag(frame);
  if (edit == TagEdit::kPush) push_tag(frame, vlan, priority);
  if (edit == TagEdit::kRename) {
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
