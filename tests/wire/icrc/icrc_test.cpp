#include "wire/icrc/icrc.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <memory>

#include "wire/roce/packet_fields.hpp"
#include "wire/wire_test_support.hpp"

namespace roci {
namespace {

using test::from_hex;
using test::parse;

std::string stored_bytes(uint32_t icrc) {
  uint8_t bytes[kIcrcBytes];
  store_icrc(bytes, icrc);
  return hex_text(bytes);
}

// IPv4 10.0.0.1 to 10.0.0.2, an ACK. The ICRC does not cover FECN and BECN.
TEST(Icrc, matches_golden_ack_with_any_fecn_and_becn) {
  for (const char* congestion : {"00", "40", "80"}) {
    auto bytes = from_hex(
        "020000000002 020000000001 0800 4502003000014000401126b80a0000010a000002"
        "c00012b7001c0000 1140ffff" +
        std::string(congestion) + "00001100123456 1f000005 00000000");
    const FrameView view = parse(bytes);
    ASSERT_EQ(view.kind, FrameKind::kRoce) << frame_kind_name(view.kind);
    EXPECT_EQ(stored_bytes(compute_icrc(view)), "6d4ab86b");
  }
}

// A CNP that a ConnectX-4 Lx sent (from a capture in the tests of scapy).
TEST(Icrc, matches_golden_cnp_of_a_connectx4) {
  const auto bytes = from_hex(
      "e41d2dab2bc2 7cfe90643b32 0800 45c2003c718c4000401191610a0011010a001201"
      "000012b700280000 8100ffff4000011800000000 00000000000000000000000000000000 82fd002a");
  const FrameView view = parse(bytes);
  ASSERT_EQ(view.kind, FrameKind::kRoce) << frame_kind_name(view.kind);
  EXPECT_EQ(view.opcode->opcode, Opcode::kCnp);
  EXPECT_EQ(stored_bytes(stored_icrc(view)), "82fd002a");
  EXPECT_EQ(stored_bytes(compute_icrc(view)), "82fd002a");
}

// The CNP of a vendor's web page. The ICRC printed there does not match the headers; this one does.
TEST(Icrc, matches_golden_cnp_of_a_vendor_page) {
  Packet p = make_packet(Opcode::kCnp).to(Qpn{0xd2}, Psn{0}).with_traffic_class(0x89);
  p.source = *IpAddress::parse("22.22.22.8");
  p.destination = *IpAddress::parse("22.22.22.7");
  p.v4().id = 0x98c6;
  p.v4().ttl = 0x20;
  p.udp_source_port = 56238;
  EXPECT_EQ(stored_bytes(p.finish().icrc), "dafc1bef");
}

// Bitwise reference implementation with an independent mask.
uint32_t reference_icrc(const ByteVector& frame, size_t l3, bool ipv6, size_t ip_header, size_t end) {
  ByteVector covered(8, 0xff);
  covered.insert(covered.end(), frame.begin() + static_cast<ptrdiff_t>(l3),
                 frame.begin() + static_cast<ptrdiff_t>(end));
  const auto mask = [&](size_t at, uint8_t bits = 0xff) {
    covered[8 + at] = static_cast<uint8_t>(covered[8 + at] | bits);
  };
  if (ipv6) {
    mask(0, 0x0f);
    for (const size_t at : {1U, 2U, 3U, 7U}) mask(at);
  } else {
    for (const size_t at : {1U, 8U, 10U, 11U}) mask(at);
  }
  for (const size_t at : {6U, 7U, 12U}) mask(ip_header + at);  // UDP checksum, BTH byte 4
  uint32_t crc = 0xffffffff;
  for (const uint8_t byte : covered) {
    crc ^= byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc & 1) != 0 ? crc >> 1 ^ 0xedb88320 : crc >> 1;
  }
  return ~crc;
}

TEST(Icrc, agrees_with_a_bitwise_model_on_random_packets) {
  Rng rng{5};
  for (int i = 0; i < 600; ++i) {
    const auto table = opcode_table();
    const bool ipv6 = rng.chance(0.5);
    const auto tags = static_cast<unsigned>(rng.below(3));
    const Packet p =
        test::random_packet(rng, table[rng.below(table.size())].opcode, ipv6, tags, rng.below(300));
    const size_t ip_header = ipv6 ? 40 : 20 + p.v4().options.size();
    const ByteVector bytes = encode_packet(p);
    EXPECT_EQ(p.icrc, reference_icrc(bytes, 14 + 4 * (tags + (p.cn_flow ? 1 : 0)), ipv6, ip_header,
                                     bytes.size() - p.trailing.size() - 4));
  }
}

// Short frames use a CRC in parts, long ones a single one, and some are computed during a copy.
TEST(Icrc, all_implementations_agree) {
  Rng rng{8};
  ByteVector copied(9000);
  for (const bool ipv6 : {false, true}) {
    for (size_t length = 0; length < 2300; length += length < 700 ? 1 : 41) {
      Packet p = make_packet(Opcode::kRcWriteOnly, ipv6).with_payload(test::random_bytes(rng, length));
      if (rng.chance(0.5)) p.with_vlan(0x2005);
      const ByteVector bytes = encode_packet(p.finish());
      const FrameView view = parse(bytes);
      ASSERT_EQ(compute_icrc_in_order(view), p.icrc) << length;
      ASSERT_EQ(compute_icrc(view), p.icrc) << length;
      ASSERT_EQ(compute_icrc_copying(view, copied.data()), p.icrc) << length;
      ASSERT_EQ(std::memcmp(copied.data(), bytes.data() + view.payload_offset, length), 0) << length;
    }
  }
}

// Flips each bit: the ICRC changes if and only if the bit is covered.
TEST(Icrc, covers_exactly_the_immutable_bits) {
  Rng rng{6};
  for (const bool ipv6 : {false, true}) {
    Packet p = make_packet(Opcode::kRcWriteOnly, ipv6).with_payload(test::random_bytes(rng, 9));
    p.with_vlan(0x2005).finish();
    const ByteVector bytes = encode_packet(p);
    const FrameView right = parse(bytes);
    const std::string masked =
        "ip.dscp ip.ecn ip.ttl ip.hop_limit ip.checksum ip.flow_label udp.checksum bth.fecn";
    for (uint32_t at = 0; at < right.icrc_offset; ++at) {
      for (int bit = 0; bit < 8; ++bit) {
        ByteVector changed = bytes;
        changed[at] = static_cast<uint8_t>(changed[at] ^ 1 << bit);
        FrameView view = right;  // the layout stays that of the original frame
        view.frame = changed.data();
        const std::string names = field_names_at(p, at);
        bool covered =
            at >= right.l3_offset && masked.find(names.substr(0, names.find(','))) == std::string::npos;
        if (ipv6 && at == right.l3_offset) covered = bit >= 4;  // the version, and half of the traffic class
        if (ipv6 && at > right.l3_offset && at < right.l3_offset + 4U) covered = false;
        EXPECT_EQ(compute_icrc(view) != p.icrc, covered)
            << names << " bit " << bit << (ipv6 ? " IPv6" : " IPv4");
      }
    }
  }
}

// An mbuf chain in plain memory, without a pool or EAL.
class Chain {
 public:
  // Segments of the given sizes, which together are the frame.
  Chain(const ByteVector& frame, const std::vector<size_t>& sizes) : segments_(sizes.size()) {
    size_t at = 0;
    for (size_t i = 0; i < sizes.size(); ++i) {
      storage_.push_back(std::make_unique<uint8_t[]>(sizes[i] + 1));
      if (sizes[i] > 0) std::memcpy(storage_[i].get(), frame.data() + at, sizes[i]);
      at += sizes[i];
      rte_mbuf& segment = segments_[i];
      segment.buf_addr = storage_[i].get();
      segment.data_off = 0;
      segment.data_len = static_cast<uint16_t>(sizes[i]);
      segment.next = i + 1 < sizes.size() ? &segments_[i + 1] : nullptr;
    }
    segments_[0].pkt_len = static_cast<uint32_t>(frame.size());
    segments_[0].nb_segs = static_cast<uint16_t>(sizes.size());
  }
  [[nodiscard]] const rte_mbuf* head() const { return segments_.data(); }
  [[nodiscard]] const uint8_t* data() const { return storage_[0].get(); }
  [[nodiscard]] uint32_t first() const { return segments_[0].data_len; }

 private:
  std::vector<std::unique_ptr<uint8_t[]>> storage_;
  std::vector<rte_mbuf> segments_;
};

TEST(Icrc, segmented_frame_gives_icrc_of_contiguous_frame) {
  Rng rng{7};
  for (int i = 0; i < 2000; ++i) {
    const auto table = opcode_table();
    const Packet p = test::random_packet(rng, table[rng.below(table.size())].opcode, rng.chance(0.5),
                                         static_cast<unsigned>(rng.below(3)), rng.below(64));
    const ByteVector bytes = encode_packet(p);
    const FrameView flat = parse(bytes);
    // The headers are in the first segment, followed by segments of 0 to 20 bytes, so the ICRC is split too.
    std::vector<size_t> sizes{flat.payload_offset + rng.below(4)};
    for (size_t left = bytes.size() - sizes[0]; left > 0; left -= sizes.back()) {
      sizes.push_back(std::min<size_t>(left, rng.below(20)));
    }
    const Chain chain(bytes, sizes);
    const FrameView view = parse_frame(chain.data(), chain.first(), static_cast<uint32_t>(bytes.size()),
                                       OpcodeRange::kWithPrivate);
    ASSERT_EQ(view.kind, FrameKind::kRoce);
    EXPECT_EQ(compute_icrc(view, chain.head()), p.icrc);
    EXPECT_EQ(stored_icrc(view, chain.head()), p.icrc);
  }
}

}  // namespace
}  // namespace roci
