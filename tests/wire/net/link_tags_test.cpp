#include "wire/net/link_tags.hpp"

#include <gtest/gtest.h>

#include "wire/roce/packet_fields.hpp"
#include "wire/wire_test_support.hpp"

namespace roci {
namespace {

using test::from_hex;
using test::RoomyFrame;

const std::string kMacs = "020000000002 020000000001";

std::optional<TaggedFrame> tags_of(const std::string& text) { return parse_link_tags(from_hex(text)); }

TEST(LinkTags, are_parsed_in_order) {
  const auto none = tags_of(kMacs + "0800 45");
  ASSERT_TRUE(none);
  EXPECT_EQ(none->tags, LinkTags{});
  EXPECT_EQ(none->ether_type, kEtherTypeIpv4);
  EXPECT_EQ(none->msdu_offset, 12);
  EXPECT_EQ(none->l3_offset(), 14);
  EXPECT_EQ(none->tags.size(), 0);
  EXPECT_FALSE(none->tags.priority());

  const auto all = tags_of(kMacs + "88a8 6001 8100 a005 22e9 a878 86dd");
  ASSERT_TRUE(all);
  EXPECT_EQ(all->tags.vlan_count, 2);
  EXPECT_EQ(all->tags.vlan[0], (VlanTag{kEtherTypeSTag, 0x6001}));
  EXPECT_EQ(all->tags.vlan[1], (VlanTag{kEtherTypeVlan, 0xa005}));
  EXPECT_EQ(all->tags.flow, 0xa878);
  EXPECT_EQ(all->tags.priority(), 3);
  EXPECT_EQ(all->tags.size(), 12);
  EXPECT_EQ(all->ether_type, kEtherTypeIpv6);
  EXPECT_EQ(all->msdu_offset, 24);
}

// A VLAN tag after the CN-TAG, a third VLAN tag and a second CN-TAG are not parsed.
TEST(LinkTags, misordered_tags_are_not_parsed) {
  EXPECT_EQ(tags_of(kMacs + "22e9 0001 8100 0002 0800")->ether_type, kEtherTypeVlan);
  EXPECT_EQ(tags_of(kMacs + "22e9 0001 22e9 0002 0800")->ether_type, kEtherTypeCnTag);
  EXPECT_EQ(tags_of(kMacs + "8100 0001 8100 0002 8100 0003 0800")->ether_type, kEtherTypeVlan);
}

TEST(LinkTags, truncated_tags_are_rejected) {
  const auto whole = from_hex(kMacs + "88a8 6001 8100 a005 22e9 a878 86dd");
  for (size_t length = 0; length < whole.size(); ++length) {
    const ByteVector cut(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(length));
    EXPECT_FALSE(parse_link_tags(cut)) << length;
  }
}

TEST(CnTag, is_inserted_after_vlan_tags_and_removed) {
  for (const std::string tags : {"", "8100 a005", "88a8 6001 8100 a005"}) {
    const auto before = from_hex(kMacs + tags + "0800 4500");
    RoomyFrame frame(before, 4);
    ASSERT_EQ(insert_cn_tag(frame.front, 0xa878), CnTagEdit::kDone);
    EXPECT_EQ(hex_text(frame.bytes()), hex_text(from_hex(kMacs + tags + "22e9 a878 0800 4500")));
    EXPECT_EQ(frame.front.headroom, 0);
    EXPECT_EQ(insert_cn_tag(frame.front, 1), CnTagEdit::kPresent);
    ASSERT_EQ(remove_cn_tag(frame.front), CnTagEdit::kDone);
    EXPECT_EQ(frame.bytes(), before);
    EXPECT_EQ(frame.front.headroom, 4);
    EXPECT_EQ(remove_cn_tag(frame.front), CnTagEdit::kAbsent);
    EXPECT_EQ(frame.bytes(), before);
  }
}

// A tag after the CN-TAG, which would become the frame's own tag when the CN-TAG is removed.
TEST(CnTag, is_not_removed_if_another_tag_follows) {
  for (const std::string hidden : {"8100 0005", "88a8 0005", "22e9 0005"}) {
    const auto before = from_hex(kMacs + "22e9 a878" + hidden + "0800 4500");
    RoomyFrame frame(before);
    EXPECT_EQ(remove_cn_tag(frame.front), CnTagEdit::kMisplaced);
    EXPECT_EQ(frame.bytes(), before);
  }
}

TEST(CnTag, failed_edit_changes_nothing) {
  RoomyFrame tight(from_hex(kMacs + "0800"), 3);
  EXPECT_EQ(insert_cn_tag(tight.front, 1), CnTagEdit::kNoHeadroom);
  EXPECT_EQ(hex_text(tight.bytes()), hex_text(from_hex(kMacs + "0800")));
  RoomyFrame cut(from_hex(kMacs + "8100 00"));
  EXPECT_EQ(insert_cn_tag(cut.front, 1), CnTagEdit::kTruncated);
  EXPECT_EQ(remove_cn_tag(cut.front), CnTagEdit::kTruncated);
  for (unsigned i = 0; i < kCnTagEditCount; ++i)
    EXPECT_FALSE(cn_tag_edit_name(static_cast<CnTagEdit>(i)).empty());
}

TEST(FiveTuple, is_read_after_all_tags) {
  Packet packet = make_packet(Opcode::kRcSendOnly);
  packet.udp_source_port = 0xc123;
  for (const bool ipv6 : {false, true}) {
    if (ipv6) {
      packet = make_packet(Opcode::kRcSendOnly, true);
      packet.udp_source_port = 0xc123;
    }
    packet.with_vlan(5);
    RoomyFrame frame(encode_packet(packet));
    ASSERT_EQ(insert_cn_tag(frame.front, 7), CnTagEdit::kDone);
    const auto tuple = read_five_tuple(frame.bytes());
    ASSERT_TRUE(tuple);
    EXPECT_EQ(*tuple, (FiveTuple{packet.source, packet.destination, kProtocolUdp, 0xc123, kRoceUdpPort}));
  }
}

TEST(FiveTuple, has_no_ports_if_the_packet_has_none) {
  const Packet packet = make_packet(Opcode::kRcSendOnly);
  const ByteVector whole = encode_packet(packet);
  const FiveTuple without{packet.source, packet.destination, kProtocolUdp, 0, 0};
  ByteVector fragment = whole;
  fragment[21] = 0x05;
  EXPECT_EQ(read_five_tuple(fragment), without);
  EXPECT_EQ(read_five_tuple(ByteVector(whole.begin(), whole.begin() + 37)), without);
  ByteVector icmp = whole;
  icmp[23] = kProtocolIcmp;
  EXPECT_EQ(read_five_tuple(icmp), (FiveTuple{packet.source, packet.destination, kProtocolIcmp, 0, 0}));
  ByteVector tcp = whole;
  tcp[23] = 6;
  EXPECT_EQ(read_five_tuple(tcp)->destination_port, kRoceUdpPort);
}

TEST(FiveTuple, is_absent_in_truncated_and_invalid_frames) {
  const ByteVector v4 = encode_packet(make_packet(Opcode::kRcSendOnly));
  const ByteVector v6 = encode_packet(make_packet(Opcode::kRcSendOnly, true));
  for (ptrdiff_t length = 0; length < 34; ++length)
    EXPECT_FALSE(read_five_tuple(ByteVector(v4.begin(), v4.begin() + length))) << length;
  for (ptrdiff_t length = 0; length < 54; ++length)
    EXPECT_FALSE(read_five_tuple(ByteVector(v6.begin(), v6.begin() + length))) << length;
  ByteVector bad = v4;
  bad[14] = 0x44;
  EXPECT_FALSE(read_five_tuple(bad)) << "header shorter than a header";
  bad[14] = 0x65;
  EXPECT_FALSE(read_five_tuple(bad)) << "version 6 in IPv4";
  bad = v6;
  bad[14] = 0x45;
  EXPECT_FALSE(read_five_tuple(bad)) << "version 4 in IPv6";
  bad = v6;
  const auto mapped = IpAddress::from_v4(1).bytes;
  std::copy(mapped.begin(), mapped.end(), bad.begin() + 14 + 8);
  EXPECT_FALSE(read_five_tuple(bad)) << "IPv4 in IPv6";
  bad = v4;
  bad[13] = 0x06;
  EXPECT_FALSE(read_five_tuple(bad)) << "ARP";
}

// Edits of the front are applied to the mbuf.
TEST(FrameFront, stores_edits_in_the_mbuf) {
  alignas(64) std::array<uint8_t, 64> memory{};
  const auto before = from_hex(kMacs + "0800 4500");
  std::copy(before.begin(), before.end(), memory.begin() + 32);
  rte_mbuf mbuf{};
  mbuf.buf_addr = memory.data();
  mbuf.buf_len = memory.size();
  mbuf.data_off = 32;
  mbuf.data_len = 16;
  mbuf.pkt_len = 40;  // the rest is in other segments
  FrameFront front = FrameFront::of(mbuf);
  ASSERT_EQ(insert_cn_tag(front, 0x0102), CnTagEdit::kDone);
  front.store(mbuf);
  EXPECT_EQ(mbuf.data_off, 28);
  EXPECT_EQ(mbuf.data_len, 20);
  EXPECT_EQ(mbuf.pkt_len, 44);
  const auto* data = rte_pktmbuf_mtod(&mbuf, const uint8_t*);
  EXPECT_EQ(hex_text({data, 20}), hex_text(from_hex(kMacs + "22e9 0102 0800 4500")));
}

}  // namespace
}  // namespace roci
