// The tags in front of a frame: up to two VLAN tags and behind them the congestion notification tag (CN-TAG), with which
// an end station says of which of its flows a frame is (802.1Q 33.2, once 802.1Qau 33.2). What is behind them, with its
// EtherType, is the MSDU.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string_view>

#include "wire/frame_front.hpp"
#include "wire/headers.hpp"

namespace roci {

inline constexpr unsigned kMaxVlanTags = 2;

struct CnTag {
  Be16 ether_type;
  Be16 flow;  // chosen by the sender (also RPID); means nothing to anybody else
};
static_assert(sizeof(CnTag) == 4);

struct LinkTags {
  std::array<VlanTag, kMaxVlanTags> vlan{};  // outermost first; those beyond vlan_count are as new
  uint8_t vlan_count = 0;
  std::optional<uint16_t> flow;  // of the CN-TAG

  // Bytes of all the tags.
  [[nodiscard]] uint32_t size() const {
    return vlan_count * static_cast<uint32_t>(sizeof(VlanHeader)) +
           (flow ? static_cast<uint32_t>(sizeof(CnTag)) : 0U);
  }
  // Of the outermost tag.
  [[nodiscard]] std::optional<uint8_t> priority() const {
    if (vlan_count == 0) return std::nullopt;
    return static_cast<uint8_t>(vlan[0].tci >> 13);
  }
  // Writes size() bytes: what stands between the source address and the EtherType of the MSDU.
  void write(uint8_t* out) const;
  friend bool operator==(const LinkTags&, const LinkTags&) = default;
};

struct TaggedFrame {
  LinkTags tags;
  uint16_t ether_type = 0;   // of the MSDU; a third VLAN tag or a second CN-TAG is MSDU
  uint32_t msdu_offset = 0;  // where that EtherType stands

  // Where the network header stands.
  [[nodiscard]] uint32_t l3_offset() const { return msdu_offset + static_cast<uint32_t>(sizeof(Be16)); }
};

// Null when `head`, which begins with the Ethernet header, ends before that EtherType does.
std::optional<TaggedFrame> parse_link_tags(std::span<const uint8_t> head);

// The five fields by which a switch tells flows apart. Ports are 0 for what has none.
struct FiveTuple {
  IpAddress source, destination;
  uint8_t protocol = 0;
  uint16_t source_port = 0, destination_port = 0;
  friend bool operator==(const FiveTuple&, const FiveTuple&) = default;
};

// Null when it is no IP packet or is cut, and for IPv6 with IPv4-mapped addresses, which would be another flow's tuple and
// do not appear on a wire (RFC 4291 2.5.5.2). Fragments and IPv6 packets with extension headers have no ports.
std::optional<FiveTuple> read_five_tuple(std::span<const uint8_t> head);

enum class CnTagEdit : uint8_t {
  kDone,
  kTruncated,   // no whole front
  kPresent,     // to be inserted, and there is one
  kAbsent,      // to be removed, and there is none
  kMisplaced,   // to be removed, and a tag behind it would take its place and put the frame into another VLAN
  kNoHeadroom,  // fewer than sizeof(CnTag) bytes
};
inline constexpr unsigned kCnTagEditCount = 6;
std::string_view cn_tag_edit_name(CnTagEdit edit);

// Behind the VLAN tags, as the order DA, SA, S-TAG, C-TAG, CN-TAG wants it. Anything but kDone has changed nothing.
CnTagEdit insert_cn_tag(FrameFront& frame, uint16_t flow);
CnTagEdit remove_cn_tag(FrameFront& frame);
// The same as insert_cn_tag() for a frame of one's own whose network header stands at `l3_offset`. Without headroom it goes
// as it is.
void put_cn_tag(rte_mbuf& frame, uint32_t l3_offset, uint16_t flow);

}  // namespace roci
