#include "wire/cnm/sampled_packet.hpp"

#include <gtest/gtest.h>

#include "wire/headers/opcodes.hpp"
#include "wire/roce/packet.hpp"
#include "wire/wire_test_support.hpp"

namespace roci {
namespace {

// The MSDU of a CNM about this packet: from the EtherType after the tags on.
ByteVector msdu_of(const Packet& packet, size_t most = 64) {
  const ByteVector frame = encode_packet(packet);
  const auto tagged = parse_link_tags(frame);
  ByteVector msdu(frame.begin() + tagged->msdu_offset, frame.end());
  msdu.resize(std::min(msdu.size(), most));
  return msdu;
}

TEST(SampledPacket, fields_from_64_bytes_match_whole_packet) {
  Rng rng{4};
  for (const OpcodeInfo& info : opcode_table()) {
    for (const bool ipv6 : {false, true}) {
      Packet packet = test::random_packet(rng, info.opcode, ipv6, 1, 100);
      if (!ipv6) packet.v4().options.clear();
      packet.finish();
      const auto sampled = read_sampled_packet(msdu_of(packet));
      ASSERT_TRUE(sampled) << info.name;
      EXPECT_EQ(sampled->flow, *read_five_tuple(encode_packet(packet)));
      ASSERT_EQ(sampled->opcode, &info);
      EXPECT_EQ(sampled->destination_qp, packet.bth.destination_qp);
      EXPECT_EQ(sampled->psn, packet.bth.psn);
      EXPECT_EQ(sampled->is_response(), info.operation == Operation::kReadResponse);
      // with IPv6 the DETH is beyond 64 bytes
      const std::optional<Qpn> source =
          packet.deth && !ipv6 ? std::optional(packet.deth->source_qp) : std::nullopt;
      EXPECT_EQ(sampled->source_qp, source) << info.name;
    }
  }
}

TEST(SampledPacket, truncated_sample_gives_only_contained_fields) {
  Rng rng{6};
  for (const bool ipv6 : {false, true}) {
    const Packet packet = make_packet(Opcode::kUdSendOnly, ipv6).to(Qpn{0x123456}, Psn{0x654321}).finish();
    const ByteVector whole = msdu_of(packet);
    const size_t ports_end = 2 + (ipv6 ? 40 : 20) + 4, bth_end = ports_end + 4 + 12;
    for (size_t length = 0; length <= whole.size(); ++length) {
      const ByteVector part(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(length));
      const auto sampled = read_sampled_packet(part);
      ASSERT_EQ(sampled.has_value(), length >= ports_end) << length;
      if (sampled) {
        EXPECT_EQ(sampled->opcode != nullptr, length >= bth_end) << length;
      }
    }
  }
}

TEST(SampledPacket, rejects_other_protocols_fragments_and_invalid_addresses) {
  const Packet packet = make_packet(Opcode::kRcSendOnly).finish();
  const auto changed = [&](size_t at, uint8_t value) {
    ByteVector msdu = msdu_of(packet);
    msdu[at] = value;
    return read_sampled_packet(msdu);
  };
  EXPECT_TRUE(changed(2, 0x45));
  EXPECT_FALSE(changed(1, 6)) << "ARP";
  EXPECT_FALSE(changed(2, 0x55)) << "version";
  EXPECT_FALSE(changed(2, 0x44)) << "header length";
  EXPECT_FALSE(changed(8, 0x20)) << "more fragments";
  EXPECT_FALSE(changed(11, 6)) << "TCP";
  EXPECT_EQ(changed(2 + 20 + 8, 0x1f)->opcode, nullptr) << "an opcode that is none";
  EXPECT_EQ(changed(2 + 20 + 3, 0x51)->opcode, nullptr) << "another port";
  ByteVector mapped = msdu_of(make_packet(Opcode::kRcSendOnly, true).finish());
  EXPECT_TRUE(read_sampled_packet(mapped));
  std::fill_n(mapped.begin() + 2 + 8, 10, uint8_t{0});
  std::fill_n(mapped.begin() + 2 + 18, 2, uint8_t{0xff});
  EXPECT_FALSE(read_sampled_packet(mapped)) << "an IPv4 address in IPv6";
}

}  // namespace
}  // namespace roci
