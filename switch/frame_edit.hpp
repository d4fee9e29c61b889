// Changing the front of a frame in place. Frames arrive by pointer and may share their memory with a sender (a clone,
// external memory, a reference count above one), so whoever changes a header asks for ownership first.
#pragma once

#include <rte_mbuf.h>

#include <cstdint>
#include <span>

#include "wire/headers.hpp"
#include "wire/link_tags.hpp"

namespace roci {

// The longest front of a frame that the switch reads or writes: Ethernet, one tag, and IPv4 with all options, or IPv6
// and a neighbour message with one option.
inline constexpr uint32_t kSwitchHeaderBytes = 14 + 4 + 40 + 32;

// The first segment of a frame.
inline std::span<const uint8_t> head_of(const rte_mbuf* frame) {
  return {rte_pktmbuf_mtod(frame, const uint8_t*), frame->data_len};
}

// Gives a frame whose first segment is this caller's alone, holds the first min(kSwitchHeaderBytes, length) bytes and
// has `headroom` free bytes in front: the frame itself, or a copy from `pool` in its place. Null, and the frame freed,
// when the pool is empty.
rte_mbuf* own_front(rte_mbuf* frame, uint32_t headroom, rte_mempool* pool);

// Sets CE in a frame that is ECN-capable. Null, and the frame freed, when a buffer was needed and there was none.
rte_mbuf* mark_frame(rte_mbuf* frame, rte_mempool* pool);

// The VLAN tag (802.1Q C-TAG) that a frame carries. A service tag counts as payload: this is a customer bridge.
struct TagView {
  bool present = false;
  uint16_t vid = 0;  // 0: a priority tag, which names no VLAN
};
inline TagView read_tag(const rte_mbuf& frame) {
  if (frame.data_len < sizeof(EthernetHeader) + sizeof(VlanHeader)) return {};
  if (rte_pktmbuf_mtod(&frame, const EthernetHeader*)->ether_type.get() != kEtherTypeVlan) return {};
  const auto* tag = rte_pktmbuf_mtod_offset(&frame, const VlanHeader*, sizeof(EthernetHeader));
  return {true, static_cast<uint16_t>(tag->tci.get() & 0xfff)};
}

// What must become of a frame's tag on a port that sends the frame's VLAN with or without one. A priority tag stays when the
// VLAN goes untagged (it carries the PCP), and gets the VLAN's number when it goes tagged.
enum class TagEdit : uint8_t { kNone, kPush, kPop, kRename };
inline TagEdit tag_edit(const rte_mbuf& frame, bool tagged, uint16_t vlan) {
  const TagView tag = read_tag(frame);
  if (!tagged) return tag.present && tag.vid != 0 ? TagEdit::kPop : TagEdit::kNone;
  if (!tag.present) return TagEdit::kPush;
  return tag.vid == vlan ? TagEdit::kNone : TagEdit::kRename;
}
// How long the frame will be then.
inline uint32_t length_after(TagEdit edit, const rte_mbuf& frame) {
  constexpr uint32_t kTag = sizeof(VlanHeader);
  if (edit == TagEdit::kPush) return frame.pkt_len + kTag;
  return edit == TagEdit::kPop ? frame.pkt_len - kTag : frame.pkt_len;
}
// Does it. Null, and the frame freed, when a buffer was needed and there was none.
rte_mbuf* edit_tag(rte_mbuf* frame, TagEdit edit, uint16_t vlan, rte_mempool* pool);

// Takes the CN-TAG out, if there is one. Null as above.
rte_mbuf* strip_cn_tag(rte_mbuf* frame, rte_mempool* pool);

}  // namespace roci
