#include "wire/extensions/extension_auth.hpp"

#include <gtest/gtest.h>

#include <set>

#include "wire/icrc/icrc.hpp"
#include "wire/roce/packet_fields.hpp"
#include "wire/wire_test_support.hpp"

namespace roci {
namespace {

using test::from_hex;
using test::kAllExtensions;
using test::parse;

SipKey example_key() {
  return derive_auth_key({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, Qpn{0x11}, Qpn{0x118});
}

ExtensionView block_of(const ByteVector& frame) {
  return split_payload(parse(frame), static_cast<uint32_t>(frame.size()), kAllExtensions).block;
}

ByteVector signed_frame(const SipKey& key, Packet packet, uint64_t sequence) {
  ByteVector frame = encode_packet(packet.finish());
  sign(key, parse(frame), block_of(frame), sequence);
  store_icrc(frame.data() + parse(frame).icrc_offset, compute_icrc(parse(frame)));
  return frame;
}

Packet example_ack(bool ipv6 = false) {
  ExtensionBlock block;
  block.ce_echo = CeEchoValues{100, 3};
  block.auth.emplace();
  return make_packet(Opcode::kRcAcknowledge, ipv6)
      .to(Qpn{0x11}, Psn{0x123456})
      .with_aeth(0x1f, Msn{5})
      .with_extensions(block);
}

// Compares with the covered bytes as assembled here.
TEST(ExtensionAuth, mac_covers_defined_bytes) {
  const uint64_t sequence = 0x1'0000'0007;
  const ByteVector frame = signed_frame(example_key(), example_ack(), sequence);
  const ByteVector covered = from_hex(
      "00000000000000000000ffff0a000001 00000000000000000000ffff0a000002 c000"
      "1100ffff 00000011 40123456"
      "0000000100000007"
      "1f000005"
      "10068002 0000006400000003 00000007");
  EXPECT_EQ(block_of(frame).auth().mac.get(), siphash(example_key(), covered));
  EXPECT_EQ(block_of(frame).auth().sequence.get(), 7U);

  const ByteVector frame6 = signed_frame(example_key(), example_ack(true), 1);
  const ByteVector covered6 = from_hex(
      "fd000000000000000000000000000001 fd000000000000000000000000000002 c000"
      "1100ffff 00000011 40123456"
      "0000000000000001"
      "1f000005"
      "10068002 0000006400000003 00000001");
  EXPECT_EQ(block_of(frame6).auth().mac.get(), siphash(example_key(), covered6));
}

// Computes both halves of the key here: SipHash of a label, the half, and the two queue pair numbers.
TEST(ExtensionAuth, keys_differ_per_connection_and_direction) {
  const AuthMaterial material{9, 8, 7};
  SipKey wanted;
  for (uint8_t half = 0; half < 2; ++half) {
    ByteVector input = from_hex("6363782d61757468 00 000011 000118");
    input[8] = half;
    const uint64_t bits = siphash(material, input);
    for (unsigned i = 0; i < 8; ++i) wanted[8U * half + i] = static_cast<uint8_t>(bits >> (8 * i));
  }
  EXPECT_EQ(derive_auth_key(material, Qpn{0x11}, Qpn{0x118}), wanted);

  std::set<SipKey> keys;
  for (const uint32_t receiver : {1U, 2U, 0xffffffU}) {
    for (const uint32_t sender : {1U, 2U, 0xffffffU}) {
      keys.insert(derive_auth_key(material, Qpn{receiver}, Qpn{sender}));
      keys.insert(derive_auth_key({9, 8, 6}, Qpn{receiver}, Qpn{sender}));
    }
  }
  EXPECT_EQ(keys.size(), 18U);
}

TEST(ExtensionAuth, network_key_and_incarnations_change_the_material) {
  const SipKey network = example_key();
  const NetworkKeys keys = derive_network_keys(network);
  const AuthMaterial material{9, 8, 7};
  std::set<SipKey> all{network, keys.datagrams, keys.sessions, material};
  EXPECT_EQ(all.size(), 4U);
  all.insert(mix_network_key(keys, material, 1, 2));
  all.insert(mix_network_key(keys, material, 2, 1));
  all.insert(mix_network_key(keys, material, 1, 3));
  all.insert(mix_network_key(keys, material, 3, 2));
  all.insert(mix_network_key(keys, AuthMaterial{9, 8, 6}, 1, 2));
  all.insert(mix_network_key(derive_network_keys(SipKey{1}), material, 1, 2));
  EXPECT_EQ(all.size(), 10U);
  EXPECT_EQ(mix_network_key(keys, material, 1, 2), mix_network_key(keys, material, 1, 2));
}

// Flips each bit of the packet. It is accepted if and only if switches may change the bit, or it is payload.
TEST(ExtensionAuth, mac_covers_all_immutable_bits_of_headers_and_block) {
  for (const bool ipv6 : {false, true}) {
    ExtensionBlock block;
    block.int_echo.emplace().hop_count = 2;
    block.auth.emplace();
    Packet packet =
        make_packet(Opcode::kRcReadResponseOnly, ipv6).to(Qpn{0x11}, Psn{9}).with_extensions(block);
    packet.with_payload(ByteVector(5, 0x5a));
    const ByteVector frame = signed_frame(example_key(), packet, 3);
    const FrameView right = parse(frame);
    const uint32_t block_end = right.payload_offset + block.bytes();
    unsigned taken = 0;
    for (uint32_t at = right.l3_offset; at < block_end; ++at) {
      for (int bit = 0; bit < 8; ++bit) {
        ByteVector changed = frame;
        changed[at] = static_cast<uint8_t>(changed[at] ^ 1 << bit);
        if (!ipv6) {  // corrects the IP checksum, so that the parser accepts the frame
          const uint32_t checksum = right.l3_offset + 10U;
          if (at == checksum || at == checksum + 1) continue;
          auto again = changed;
          again[checksum] = again[checksum + 1] = 0;
          uint32_t sum = 0;
          for (uint32_t i = right.l3_offset; i < right.l4_offset; i += 2)
            sum += static_cast<uint32_t>(again[i] << 8 | again[i + 1]);
          sum = (sum & 0xffff) + (sum >> 16);
          sum = ~((sum & 0xffff) + (sum >> 16)) & 0xffff;
          changed[checksum] = static_cast<uint8_t>(sum >> 8);
          changed[checksum + 1] = static_cast<uint8_t>(sum);
        }
        const FrameView view = parse(changed);
        if (view.kind != FrameKind::kRoce) continue;
        const ExtensionView found = block_of(changed);
        if (!found.accepted()) continue;
        AuthReceiver receiver(example_key());
        const std::string names = field_names_at(*decode_packet(frame), at);
        const bool may_change =
            names.find("ip.") == 0
                ? names.find("source") == std::string::npos && names.find("destination") == std::string::npos
                : names.starts_with("udp.checksum") || names.starts_with("bth.fecn");
        EXPECT_EQ(receiver.check(view, found) == AuthOutcome::kRight, may_change) << names << " bit " << bit;
        taken += may_change ? 1 : 0;
      }
    }
    EXPECT_GT(taken, 8U);
  }
  // The ICRC protects the payload.
  ExtensionBlock block;
  block.auth.emplace();
  Packet packet = make_packet(Opcode::kRcSendOnly).with_extensions(block).with_payload(ByteVector(4));
  ByteVector frame = signed_frame(example_key(), packet, 0);
  frame[frame.size() - 5] ^= 1;
  EXPECT_EQ(AuthReceiver(example_key()).check(parse(frame), block_of(frame)), AuthOutcome::kRight);
}

TEST(ExtensionAuth, each_sequence_is_accepted_once_and_in_order) {
  AuthReceiver receiver(example_key());
  const auto check = [&](uint64_t sequence) {
    const ByteVector frame = signed_frame(example_key(), example_ack(), sequence);
    return receiver.check(parse(frame), block_of(frame));
  };
  EXPECT_EQ(check(0), AuthOutcome::kRight);
  EXPECT_EQ(check(0), AuthOutcome::kReplayed);
  EXPECT_EQ(check(5), AuthOutcome::kRight) << "those between were lost";
  EXPECT_EQ(check(4), AuthOutcome::kReplayed) << "overtaken";
  EXPECT_EQ(check(5), AuthOutcome::kReplayed);
  EXPECT_EQ(receiver.next(), 6U);
  // Sequence numbers above 2^32; the packet contains only the low half.
  EXPECT_EQ(check(0xffff'ffff), AuthOutcome::kRight);
  EXPECT_EQ(check(0x1'0000'0000), AuthOutcome::kRight);
  EXPECT_EQ(check(0x1'0000'0005), AuthOutcome::kRight);
  EXPECT_EQ(check(5), AuthOutcome::kWrongMac) << "an old packet whose low half comes round again";
  EXPECT_EQ(check(0xffff'ffff), AuthOutcome::kReplayed);
  EXPECT_EQ(receiver.next(), 0x1'0000'0006U);
}

TEST(ExtensionAuth, packet_without_auth_or_with_another_key_changes_no_state) {
  AuthReceiver receiver(example_key());
  Packet bare = example_ack();
  bare.extensions->auth.reset();
  const ByteVector frame = encode_packet(bare.finish());
  EXPECT_EQ(receiver.check(parse(frame), block_of(frame)), AuthOutcome::kMissing);
  const ByteVector plain = encode_packet(make_packet(Opcode::kRcAcknowledge).finish());
  EXPECT_EQ(receiver.check(parse(plain), block_of(plain)), AuthOutcome::kMissing);
  SipKey other = example_key();
  other[15] ^= 0x80;
  const ByteVector forged = signed_frame(other, example_ack(), 1000);
  EXPECT_EQ(receiver.check(parse(forged), block_of(forged)), AuthOutcome::kWrongMac);
  EXPECT_EQ(receiver.next(), 0U);
  std::set<std::string_view> names;
  for (unsigned i = 0; i < kAuthOutcomeCount; ++i)
    names.insert(auth_outcome_name(static_cast<AuthOutcome>(i)));
  EXPECT_EQ(names.size(), kAuthOutcomeCount);
}

}  // namespace
}  // namespace roci
