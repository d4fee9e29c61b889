// Tags between the source MAC address and the MSDU of a frame: up to two VLAN tags, then the congestion notification
// tag (CN-TAG). With the CN-TAG an end station specifies to which of its flows a frame belongs (802.1Q 33.2, formerly
// 802.1Qau 33.2). The MSDU is the rest of the frame, starting with its EtherType.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string_view>

#include "wire/headers/headers.hpp"
#include "wire/net/frame_front.hpp"

namespace roci {

inline constexpr unsigned kMaxVlanTags = 2;

struct CnTag {
  Be16 ether_type;
  Be16 flow;  // chosen by the sender (also called RPID), opaque to other stations
};
static_assert(sizeof(CnTag) == 4);

struct LinkTags {
  std::array<VlanTag, kMaxVlanTags> vlan{};  // outermost first; those from vlan_count on are default values
  uint8_t vlan_count = 0;
  std::optional<uint16_t> flow;  // of the CN-TAG

  // Length of all tags in bytes.
  [[nodiscard]] uint32_t size() const {
    return vlan_count * static_cast<uint32_t>(sizeof(VlanHeader)) +
           (flow ? static_cast<uint32_t>(sizeof(CnTag)) : 0U);
  }
  // Priority in the outermost tag.
  [[nodiscard]] std::optional<uint8_t> priority() const {
    if (vlan_count == 0) return std::nullopt;
    return static_cast<uint8_t>(vlan[0].tci >> 13);
  }
  // Writes size() bytes, the part of a frame between the source address and the EtherType of the MSDU.
  void write(uint8_t* out) const;
  friend bool operator==(const LinkTags&, const LinkTags&) = default;
};

struct TaggedFrame {
  LinkTags tags;
  uint16_t ether_type = 0;   // of the MSDU; a third VLAN tag or a second CN-TAG is part of the MSDU
  uint32_t msdu_offset = 0;  // offset of that EtherType

  // Offset of the network header.
  [[nodiscard]] uint32_t l3_offset() const { return msdu_offset + static_cast<uint32_t>(sizeof(Be16)); }
};

// Returns null if `head`, which starts with the Ethernet header, ends before the end of that EtherType.
std::optional<TaggedFrame> parse_link_tags(std::span<const uint8_t> head);

// The five fields that identify a flow in a switch. Ports are 0 for protocols without ports.
struct FiveTuple {
  IpAddress source, destination;
  uint8_t protocol = 0;
  uint16_t source_port = 0, destination_port = 0;
  friend bool operator==(const FiveTuple&, const FiveTuple&) = default;
};

// Returns null if the packet is truncated or not IP. Also null for IPv6 with IPv4-mapped addresses: they do not appear
// on the wire (RFC 4291 2.5.5.2) and would be mistaken for an IPv4 flow. Fragments and IPv6 packets with extension
// headers have no ports.
std::optional<FiveTuple> read_five_tuple(std::span<const uint8_t> head);

enum class CnTagEdit : uint8_t {
  kDone,
  kTruncated,   // `head` ends before the MSDU
  kPresent,     // insertion: the frame already has a CN-TAG
  kAbsent,      // removal: the frame has no CN-TAG
  kMisplaced,   // removal: a tag after the CN-TAG would move the frame to another VLAN
  kNoHeadroom,  // less than sizeof(CnTag)
};
inline constexpr unsigned kCnTagEditCount = 6;
std::string_view cn_tag_edit_name(CnTagEdit edit);

// Edit the CN-TAG after the VLAN tags, in the required order DA, SA, S-TAG, C-TAG, CN-TAG. Results other than kDone
// change nothing.
CnTagEdit insert_cn_tag(FrameFront& frame, uint16_t flow);
CnTagEdit remove_cn_tag(FrameFront& frame);
// As insert_cn_tag(), for a frame that this host built and whose network header is at `l3_offset`. Without headroom the
// frame remains untagged.
void put_cn_tag(rte_mbuf& frame, uint32_t l3_offset, uint16_t flow);

}  // namespace roci
