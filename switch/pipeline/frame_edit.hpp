// In-place changes of frame headers. Received frames may share their memory with a sender (clone, external buffer,
// reference count above one), so a caller must obtain ownership with own_front() before it changes a header.
#pragma once

#include <rte_mbuf.h>

#include <cstdint>
#include <span>

#include "wire/headers/headers.hpp"
#include "wire/net/link_tags.hpp"

namespace roci {

// Maximum header length that the switch reads or writes: Ethernet, one tag, and IPv4 with all options, or IPv6 and a
// neighbor message with one option.
inline constexpr uint32_t kSwitchHeaderBytes = 14 + 4 + 40 + 32;

// First segment of a frame.
inline std::span<const uint8_t> head_of(const rte_mbuf* frame) {
  return {rte_pktmbuf_mtod(frame, const uint8_t*), frame->data_len};
}

// Returns a frame whose first segment is not shared, holds the first min(kSwitchHeaderBytes, length) bytes, and has
// `headroom` free bytes in front. This is the frame itself, or a copy from `pool` that replaces it. Returns null, and
// frees the frame, if the pool is empty.
rte_mbuf* own_front(rte_mbuf* frame, uint32_t headroom, rte_mempool* pool);

// Sets CE in an ECN-capable frame. Returns null, and frees the frame, if a copy is required and the pool is empty.
rte_mbuf* mark_frame(rte_mbuf* frame, rte_mempool* pool);

// VLAN tag (802.1Q C-TAG) of a frame. As in a customer bridge, an S-TAG counts as payload.
struct TagView {
  bool present = false;
  uint16_t vid = 0;  // 0: priority tag, without a VLAN
};
inline TagView read_tag(const rte_mbuf& frame) {
  if (frame.data_len < sizeof(EthernetHeader) + sizeof(VlanHeader)) return {};
  if (rte_pktmbuf_mtod(&frame, const EthernetHeader*)->ether_type.get() != kEtherTypeVlan) return {};
  const auto* tag = rte_pktmbuf_mtod_offset(&frame, const VlanHeader*, sizeof(EthernetHeader));
  return {true, static_cast<uint16_t>(tag->tci.get() & 0xfff)};
}

// Edit of a frame's tag for a port that sends the VLAN tagged or untagged. A priority tag is kept if the VLAN is
// untagged, since it carries the PCP, and gets the VID if the VLAN is tagged.
enum class TagEdit : uint8_t { kNone, kPush, kPop, kRename };
inline TagEdit tag_edit(const rte_mbuf& frame, bool tagged, uint16_t vlan) {
  const TagView tag = read_tag(frame);
  if (!tagged) return tag.present && tag.vid != 0 ? TagEdit::kPop : TagEdit::kNone;
  if (!tag.present) return TagEdit::kPush;
  return tag.vid == vlan ? TagEdit::kNone : TagEdit::kRename;
}
// Length of the frame after the edit.
inline uint32_t length_after(TagEdit edit, const rte_mbuf& frame) {
  constexpr uint32_t kTag = sizeof(VlanHeader);
  if (edit == TagEdit::kPush) return frame.pkt_len + kTag;
  return edit == TagEdit::kPop ? frame.pkt_len - kTag : frame.pkt_len;
}
// Applies the edit; `priority`: PCP of a tag that is added. Returns null, and frees the frame, if a copy is required and
// the pool is empty.
rte_mbuf* edit_tag(rte_mbuf* frame, TagEdit edit, uint16_t vlan, uint8_t priority, rte_mempool* pool);

// Removes the CN-TAG, if present. Returns null as edit_tag().
rte_mbuf* strip_cn_tag(rte_mbuf* frame, rte_mempool* pool);

}  // namespace roci
