#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "base/rng.hpp"
#include "wire/net/arp.hpp"
#include "wire/net/icmp.hpp"
#include "wire/net/nd.hpp"

namespace roci {
namespace {

const MacAddress kMacA = *MacAddress::parse("02:00:00:00:00:0a");
const MacAddress kMacB = *MacAddress::parse("02:00:00:00:00:0b");
const IpAddress kIpA = *IpAddress::parse("10.0.0.1");
const IpAddress kIpB = *IpAddress::parse("10.0.0.2");
const IpAddress kIp6A = *IpAddress::parse("fd00::1");
const IpAddress kIp6B = *IpAddress::parse("fd00::2");

std::string hex(std::span<const uint8_t> bytes) {
  std::string text;
  char digits[3];
  for (const uint8_t byte : bytes) {
    std::snprintf(digits, sizeof digits, "%02x", byte);
    text += digits;
  }
  return text;
}

FrameView parse_standard(std::span<const uint8_t> frame) {
  const auto length = static_cast<uint32_t>(frame.size());
  return parse_frame(frame.data(), length, length);
}

// The bytes after the IP header, with the length in the IP header, or for ARP after the Ethernet header.
std::span<const uint8_t> body_of(const FrameView& view, std::span<const uint8_t> frame) {
  if (view.kind == FrameKind::kArp) return frame.subspan(view.l3_offset);
  const uint32_t end = view.ipv6 ? uint32_t{view.l4_offset} + view.ip6().payload_length.get()
                                 : uint32_t{view.l3_offset} + view.ipv4().total_length.get();
  return frame.subspan(view.l4_offset, end - view.l4_offset);
}

TEST(Arp, frame_matches_rfc_826) {
  std::array<uint8_t, 64> out{};
  const uint32_t length = build_arp({MacAddress::broadcast(), kMacA, 0},
                                    {ArpOperation::kRequest, kMacA, kIpA, MacAddress{}, kIpB}, out);
  EXPECT_EQ(hex(std::span(out).first(length)),
            "ffffffffffff02000000000a0806"
            "0001080006040001"
            "02000000000a0a000001"
            "0000000000000a000002");
}

TEST(Arp, round_trip_preserves_message_with_and_without_tag) {
  for (const uint16_t vlan : {uint16_t{0}, uint16_t{7}}) {
    std::array<uint8_t, kMaxArpFrame> out{};
    const ArpMessage sent{ArpOperation::kReply, kMacB, kIpB, kMacA, kIpA};
    const auto frame = std::span(out).first(build_arp({kMacA, kMacB, vlan}, sent, out));
    const FrameView view = parse_standard(frame);
    ASSERT_EQ(view.kind, FrameKind::kArp);
    EXPECT_EQ(view.vlan_id(), vlan);
    const auto read = parse_arp(body_of(view, frame));
    ASSERT_TRUE(read);
    EXPECT_EQ(read->operation, sent.operation);
    EXPECT_EQ(read->sender_mac, kMacB);
    EXPECT_EQ(read->sender_ip, kIpB);
    EXPECT_EQ(read->target_mac, kMacA);
    EXPECT_EQ(read->target_ip, kIpA);
    EXPECT_FALSE(read->is_gratuitous());
  }
}

TEST(Arp, rejects_other_hardware_protocols_lengths_and_operations) {
  std::array<uint8_t, 64> out{};
  const uint32_t length = build_arp({kMacA, kMacB, 0}, {ArpOperation::kReply, kMacB, kIpB, kMacA, kIpA}, out);
  const auto arp = std::span(out).subspan(14, length - 14);
  ASSERT_TRUE(parse_arp(arp));
  EXPECT_FALSE(parse_arp(arp.first(27)));
  for (const size_t at : {1, 3, 4, 5, 7}) {
    arp[at] ^= 0x10;
    EXPECT_FALSE(parse_arp(arp)) << at;
    arp[at] ^= 0x10;
  }
}

// Expected bytes written by hand; the checksum 0x7d8e was computed by a separate program.
TEST(Nd, solicitation_matches_rfc_4861) {
  NeighborMessage message;
  message.source = kIp6A;
  message.target = kIp6B;
  message.destination = kIp6B.solicited_node();
  message.link_layer = kMacA;
  std::array<uint8_t, 128> out{};
  const uint32_t length = build_nd({multicast_mac(message.destination), kMacA, 0}, message, out);
  EXPECT_EQ(hex(std::span(out).first(length)),
            "3333ff00000202000000000a86dd"
            "6000000000203aff"
            "fd000000000000000000000000000001"
            "ff0200000000000000000001ff000002"
            "87007d8e00000000"
            "fd000000000000000000000000000002"
            "010102000000000a");
}

NeighborMessage advertisement() {
  NeighborMessage message;
  message.advertisement = true;
  message.source = kIp6B;
  message.destination = kIp6A;
  message.target = kIp6B;
  message.link_layer = kMacB;
  message.solicited = true;
  message.override_cache = true;
  return message;
}

std::vector<uint8_t> frame_of(const NeighborMessage& message, uint16_t vlan = 0) {
  std::vector<uint8_t> out(128);
  out.resize(build_nd({kMacA, kMacB, vlan}, message, out));
  return out;
}

std::optional<NeighborMessage> read_nd(std::span<const uint8_t> frame) {
  const FrameView view = parse_standard(frame);
  if (view.kind != FrameKind::kIpv6) return std::nullopt;
  return parse_nd(view, body_of(view, frame));
}

TEST(Nd, round_trip_preserves_advertisement) {
  for (unsigned bits = 0; bits < 16; ++bits) {
    NeighborMessage sent = advertisement();
    sent.router = (bits & 1) != 0;
    sent.solicited = (bits & 2) != 0;
    sent.override_cache = (bits & 4) != 0;
    if ((bits & 8) != 0) sent.link_layer.reset();
    const auto read = read_nd(frame_of(sent, bits % 2 == 0 ? 0 : 100));
    ASSERT_TRUE(read) << bits;
    EXPECT_TRUE(read->advertisement);
    EXPECT_EQ(read->source, sent.source);
    EXPECT_EQ(read->destination, sent.destination);
    EXPECT_EQ(read->target, sent.target);
    EXPECT_EQ(read->link_layer, sent.link_layer);
    EXPECT_EQ(read->router, sent.router);
    EXPECT_EQ(read->solicited, sent.solicited);
    EXPECT_EQ(read->override_cache, sent.override_cache);
  }
}

TEST(Nd, detects_any_flipped_bit_of_validated_fields) {
  const auto good = frame_of(advertisement());
  ASSERT_TRUE(read_nd(good));
  // IPv6 version, class and flow label are not covered by the checksum. All other fields are covered or validated.
  for (size_t byte = 14 + 4; byte < good.size(); ++byte) {
    for (unsigned bit = 0; bit < 8; ++bit) {
      auto bad = good;
      bad[byte] = static_cast<uint8_t>(bad[byte] ^ 1U << bit);
      EXPECT_FALSE(read_nd(bad)) << byte << "." << bit;
    }
  }
}

TEST(Nd, rejects_messages_that_violate_rfc_4861_7_1) {
  NeighborMessage message = advertisement();
  message.target = *IpAddress::parse("ff02::1");
  EXPECT_FALSE(read_nd(frame_of(message))) << "multicast target";
  message = advertisement();
  message.destination = *IpAddress::parse("ff02::1");
  EXPECT_FALSE(read_nd(frame_of(message))) << "solicited advertisement to a group";
  message.solicited = false;
  EXPECT_TRUE(read_nd(frame_of(message)));
  message = advertisement();
  message.advertisement = false;
  message.source = IpAddress{};
  message.destination = message.target.solicited_node();
  EXPECT_FALSE(read_nd(frame_of(message))) << "duplicate check with a link-layer address";
  message.link_layer.reset();
  EXPECT_TRUE(read_nd(frame_of(message)));
  message.destination = message.target;
  EXPECT_FALSE(read_nd(frame_of(message))) << "duplicate check by unicast";
}

TEST(Echo, reply_mirrors_the_request_for_both_families) {
  std::vector<uint8_t> body(57);
  for (size_t i = 0; i < body.size(); ++i) body[i] = static_cast<uint8_t>(i * 3);
  for (const auto& [from, to] : {std::pair{kIpA, kIpB}, std::pair{kIp6A, kIp6B}}) {
    const EchoMessage request{false, from, to, 0x68, body};
    const LinkHeader link{kMacB, kMacA, 5};
    std::vector<uint8_t> frame(echo_frame_length(link, request));
    EXPECT_EQ(build_echo(link, request, frame), frame.size());
    const FrameView view = parse_standard(frame);
    ASSERT_EQ(view.kind, from.is_v4() ? FrameKind::kIpv4 : FrameKind::kIpv6) << frame_kind_name(view.kind);
    const auto read = parse_echo(view, body_of(view, frame));
    ASSERT_TRUE(read);
    EXPECT_FALSE(read->reply);
    const EchoMessage reply = echo_reply_to(*read);
    EXPECT_TRUE(reply.reply);
    EXPECT_EQ(reply.source, to);
    EXPECT_EQ(reply.destination, from);
    EXPECT_EQ(reply.traffic_class, 0x68);
    EXPECT_TRUE(std::equal(reply.body.begin(), reply.body.end(), body.begin(), body.end()));
    for (size_t byte = view.l4_offset; byte < frame.size(); ++byte) {
      auto bad = frame;
      bad[byte] ^= 4;
      EXPECT_FALSE(parse_echo(parse_standard(bad), body_of(view, bad))) << byte;
    }
  }
}

// A parser must not read beyond any input; sanitizers verify this.
TEST(NeighborMessages, random_bytes_are_parsed_safely) {
  Rng rng{3};
  for (int round = 0; round < 20'000; ++round) {
    auto frame = frame_of(advertisement());
    for (uint64_t flips = rng.between(1, 4); flips > 0; --flips) {
      frame[rng.below(frame.size())] = static_cast<uint8_t>(rng.next());
    }
    frame.resize(rng.between(0, frame.size()));
    frame.shrink_to_fit();
    const FrameView view = parse_standard(frame);
    if (view.kind == FrameKind::kArp) parse_arp(body_of(view, frame));
    if (view.kind == FrameKind::kIpv4 || view.kind == FrameKind::kIpv6) {
      parse_nd(view, body_of(view, frame));
      parse_echo(view, body_of(view, frame));
    }
  }
}

}  // namespace
}  // namespace roci
