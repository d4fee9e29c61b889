#include "wire/mad/capability_mad.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <functional>
#include <memory>
#include <set>

#include "wire/roce/packet_fields.hpp"
#include "wire/wire_test_support.hpp"

namespace roci {
namespace {

using test::from_hex;

constexpr uint32_t bit(Capability c) { return static_cast<uint32_t>(c); }

ByteVector bytes_of(const CapabilityMad& mad) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(&mad);
  return {bytes, bytes + sizeof mad};
}

// Parses a copy that ends at the end of its allocation.
ParsedMad parse_exact(std::span<const uint8_t> bytes) {
  const auto copy = std::make_unique<uint8_t[]>(bytes.size());
  if (!bytes.empty()) std::memcpy(copy.get(), bytes.data(), bytes.size());
  return parse_capability_mad({copy.get(), bytes.size()});
}

CapabilityMessage example_request() {
  CapabilityMessage m;
  m.transaction = 0x0102030405060708;
  m.offer.capabilities = bit(Capability::kProbes) | 0x8006;
  m.offer.mtu_extra = 128;
  m.offer.int_hops = 5;
  m.offer.window = 64;
  m.offer.incarnation = 0x1112131415161718;
  for (size_t i = 0; i < m.offer.auth.size(); ++i) m.offer.auth[i] = static_cast<uint8_t>(0x20 + i);
  return m;
}

constexpr const char* kRequestHex =
    "013a0101 0000 0000 0102030405060708 0101 0000 00000000"
    "00000000 00000000 00000000 00 526f63"
    "43435831 01 01 0000 00028006 0080 05 00 00000040 000003e8"
    "1112131415161718 0000000000000000 202122232425262728292a2b2c2d2e2f";

TEST(CapabilityMad, layout_matches_documentation) {
  ByteVector wanted = from_hex(kRequestHex);
  wanted.resize(kMadBytes);
  EXPECT_EQ(hex_text(bytes_of(build_capability_mad(example_request()))), hex_text(wanted));

  CapabilityMessage response = example_request();
  response.response = true;
  response.peer_incarnation = 1;
  const ByteVector bytes = bytes_of(build_capability_mad(response));
  EXPECT_EQ(bytes[3], 0x81) << "GetResp";
  EXPECT_EQ(hex_text(std::span(bytes).subspan(72, 8)), "0000000000000001");
  EXPECT_EQ(hex_text(std::span(bytes).subspan(8, 8)), "0102030405060708") << "the transaction is repeated";

  std::ifstream file(ROCI_SOURCE_DIR "/docs/wire-extensions.md");
  std::string text;
  for (char c = 0; file.get(c);) {
    if (c != ' ' && c != '\n') text += c;
  }
  EXPECT_NE(text.find(hex_text(from_hex(kRequestHex))), std::string::npos);
}

CapabilityMessage random_message(Rng& rng) {
  CapabilityMessage m;
  m.response = rng.chance(0.5);
  m.transaction = rng.next();
  m.peer_incarnation = m.response ? rng.next() | 1 : 0;
  m.offer.capabilities = static_cast<uint32_t>(rng.next());
  m.offer.mtu_extra = static_cast<uint16_t>(rng.next());
  m.offer.int_hops = static_cast<uint8_t>(rng.next());
  m.offer.window = static_cast<uint32_t>(rng.next());
  m.offer.time_unit = static_cast<uint32_t>(rng.next()) | 1;
  m.offer.incarnation = rng.next() | 1;
  if ((m.offer.capabilities & bit_of(ExtensionType::kAuth)) != 0) {
    for (uint8_t& byte : m.offer.auth) byte = static_cast<uint8_t>(rng.next() | 1);
  }
  return m;
}

TEST(CapabilityMad, round_trip_preserves_any_message) {
  Rng rng{41};
  for (int round = 0; round < 2000; ++round) {
    const CapabilityMessage message = random_message(rng);
    const ParsedMad parsed = parse_exact(bytes_of(build_capability_mad(message)));
    ASSERT_EQ(parsed.outcome, MadOutcome::kAccepted) << mad_outcome_name(parsed.outcome);
    EXPECT_EQ(parsed.message, message);
  }
}

TEST(CapabilityMad, every_error_has_a_specific_outcome) {
  struct Row {
    const char* what;
    size_t offset;
    uint8_t value;
    MadOutcome outcome;
  };
  using enum MadOutcome;
  const Row rows[] = {
      {"nothing wrong", 3, 0x01, kAccepted},
      {"base version 2", 0, 2, kBadBaseVersion},
      {"the class of the connection manager", 1, 0x07, kOtherClass},
      {"class version 2", 2, 2, kBadClassVersion},
      {"Set", 3, 0x02, kOtherMethod},
      {"a request with a status", 5, 0x0c, kBadStatus},
      {"class specific bits", 7, 1, kBadStatus},
      {"another attribute", 17, 2, kOtherAttribute},
      {"bits behind the attribute", 19, 1, kBadStatus},
      {"an attribute modifier", 23, 1, kOtherAttribute},
      {"an RMPP version", 24, 1, kRmpp},
      {"an RMPP segment", 35, 1, kRmpp},
      {"a bit before the OUI", 36, 1, kBadStatus},
      {"another OUI", 37, 0x00, kOtherOui},
      {"another magic", 40, 'D', kBadMagic},
      {"version 0", 44, 0, kBadVersion},
      {"a lowest version of 0", 45, 0, kBadVersion},
      {"a lowest version that we do not speak", 45, 2, kBadVersion},
      {"bits behind the versions", 47, 1, kReservedBits},
      {"a bit behind the hops", 55, 1, kReservedBits},
      {"the last byte", 255, 1, kReservedBits},
      {"key material without AUTH", 50, 0x00, kBadValue},
      {"a request that repeats an incarnation", 79, 1, kBadValue},
      {"a response that does not", 3, 0x81, kBadValue},
  };
  for (const Row& row : rows) {
    ByteVector bytes = bytes_of(build_capability_mad(example_request()));
    bytes[row.offset] = row.value;
    const ParsedMad parsed = parse_exact(bytes);
    EXPECT_EQ(parsed.outcome, row.outcome) << row.what << ": " << mad_outcome_name(parsed.outcome);
  }
  const auto changed = [](const std::function<void(CapabilityMessage&)>& change) {
    CapabilityMessage m = example_request();
    change(m);
    return parse_exact(bytes_of(build_capability_mad(m))).outcome;
  };
  EXPECT_EQ(changed([](auto& m) { m.offer.time_unit = 0; }), kBadValue);
  EXPECT_EQ(changed([](auto& m) { m.offer.incarnation = 0; }), kBadValue);
  EXPECT_EQ(changed([](auto& m) { m.offer.auth = {}; }), kBadValue) << "AUTH without key material";
  EXPECT_EQ(changed([](auto& m) { m.offer.lowest = m.offer.version = 2; }), kBadVersion);

  const ByteVector whole = bytes_of(build_capability_mad(example_request()));
  for (size_t length = 0; length < whole.size(); ++length) {
    EXPECT_EQ(parse_exact(std::span(whole).first(length)).outcome, kBadSize) << length;
  }
  ByteVector longer = whole;
  longer.push_back(0);
  EXPECT_EQ(parse_exact(longer).outcome, kBadSize);

  std::set<std::string_view> names;
  for (unsigned i = 0; i < kMadOutcomeCount; ++i) names.insert(mad_outcome_name(static_cast<MadOutcome>(i)));
  EXPECT_EQ(names.size(), kMadOutcomeCount);
}

// Changes each byte. Expects that the message is rejected or differs.
TEST(CapabilityMad, changed_byte_is_rejected_or_changes_the_message) {
  Rng rng{42};
  unsigned accepted = 0;
  for (int round = 0; round < 200; ++round) {
    const CapabilityMessage message = random_message(rng);
    const ByteVector right = bytes_of(build_capability_mad(message));
    for (size_t at = 0; at < right.size(); ++at) {
      ByteVector changed = right;
      changed[at] ^= static_cast<uint8_t>(rng.between(1, 255));
      const ParsedMad parsed = parse_exact(changed);
      if (parsed.outcome != MadOutcome::kAccepted) continue;
      ++accepted;
      EXPECT_NE(parsed.message, message) << at;
      // An accepted message of this version is encoded to the same bytes again.
      if (parsed.message.offer.version == kCapabilityVersion) {
        EXPECT_EQ(bytes_of(build_capability_mad(parsed.message)), changed) << at;
      }
    }
  }
  EXPECT_GT(accepted, 1000U);
}

// A kernel without an agent for the class responds with the request's bytes, a status, and the response bit.
TEST(CapabilityMad, response_of_unaware_stack_is_parsed_as_refusal) {
  ByteVector bytes = bytes_of(build_capability_mad(example_request()));
  bytes[3] = 0x81;
  bytes[5] = 0x0c;  // method and attribute combination not supported
  const ParsedMad parsed = parse_exact(bytes);
  EXPECT_EQ(parsed.outcome, MadOutcome::kRefused);
  EXPECT_EQ(parsed.status, 0x0c);
  EXPECT_EQ(parsed.message.transaction, example_request().transaction) << "to find whom it is from";
  EXPECT_EQ(parsed.message.offer, CapabilityOffer{});
}

TEST(CapabilityMad, compatible_newer_version_may_set_reserved_bits) {
  CapabilityMessage m = example_request();
  m.offer.version = 9;
  ByteVector bytes = bytes_of(build_capability_mad(m));
  bytes[47] = bytes[55] = bytes[255] = 0xff;
  const ParsedMad parsed = parse_exact(bytes);
  ASSERT_EQ(parsed.outcome, MadOutcome::kAccepted) << mad_outcome_name(parsed.outcome);
  EXPECT_EQ(parsed.message, m);
}

const SipKey kNetworkKey{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};

CapabilityMessage signed_request() {
  CapabilityMessage m = example_request();
  m.offer.version = kSignedCapabilityVersion;
  m.offer.capabilities |= bit(Capability::kNetworkAuth);
  for (size_t i = 0; i < 16; ++i) m.offer.network_auth[i] = static_cast<uint8_t>(0x30 + i);
  return m;
}

TEST(CapabilityMad, datagram_with_network_key_has_material_and_mac_after_the_first_version) {
  CapabilityMad mad = build_capability_mad(signed_request());
  const SipKey key = derive_network_keys(kNetworkKey).datagrams;
  const IpAddress source = IpAddress::from_v4(0x0a000001), destination = IpAddress::from_v4(0x0a000002);
  sign_capability_mad(key, source, destination, mad);
  const ByteVector bytes = bytes_of(mad);
  EXPECT_EQ(hex_text(std::span(bytes).subspan(44, 2)), "0201") << "version 2, compatible with 1";
  EXPECT_EQ(hex_text(std::span(bytes).subspan(96, 16)), "303132333435363738393a3b3c3d3e3f");
  ByteVector covered = from_hex("00000000000000000000ffff0a000001 00000000000000000000ffff0a000002");
  covered.insert(covered.end(), bytes.begin(), bytes.end());
  std::fill_n(covered.begin() + 32 + 112, 8, 0);
  EXPECT_EQ(mad.mac.get(), siphash(key, covered));
  const ParsedMad parsed = parse_exact(bytes);
  ASSERT_EQ(parsed.outcome, MadOutcome::kAccepted);
  EXPECT_EQ(parsed.message.mac, mad.mac.get());
  EXPECT_EQ(parsed.message.offer, signed_request().offer);
  EXPECT_EQ(bytes_of(build_capability_mad(parsed.message)), bytes);
}

TEST(CapabilityMad, mac_covers_every_byte_and_both_addresses) {
  CapabilityMad mad = build_capability_mad(signed_request());
  const NetworkKeys keys = derive_network_keys(kNetworkKey);
  const IpAddress source = IpAddress::from_v4(0x0a000001), destination = IpAddress::from_v4(0x0a000002);
  sign_capability_mad(keys.datagrams, source, destination, mad);
  const ByteVector right = bytes_of(mad);
  const auto accepted = [&](const ByteVector& bytes, const IpAddress& from, const IpAddress& to,
                            const SipKey& key) {
    return is_signed(key, from, to, std::span<const uint8_t, kMadBytes>(bytes.data(), kMadBytes));
  };
  EXPECT_TRUE(accepted(right, source, destination, keys.datagrams));
  EXPECT_FALSE(accepted(right, destination, source, keys.datagrams)) << "sent back to its sender";
  EXPECT_FALSE(accepted(right, source, IpAddress::from_v4(0x0a000003), keys.datagrams));
  EXPECT_FALSE(accepted(right, source, destination, keys.sessions));
  EXPECT_FALSE(accepted(right, source, destination, kNetworkKey));
  for (size_t at = 0; at < kMadBytes; ++at) {
    ByteVector changed = right;
    changed[at] ^= 1;
    EXPECT_FALSE(accepted(changed, source, destination, keys.datagrams)) << at;
  }
}

TEST(CapabilityMad, network_key_fields_require_their_version_and_capability) {
  const auto outcome = [](const std::function<void(ByteVector&)>& change) {
    ByteVector bytes = bytes_of(build_capability_mad(signed_request()));
    change(bytes);
    return parse_exact(bytes).outcome;
  };
  EXPECT_EQ(outcome([](auto&) {}), MadOutcome::kAccepted);
  EXPECT_EQ(outcome([](auto& b) { b[44] = 1; }), MadOutcome::kReservedBits)
      << "fields of version 2 in version 1";
  EXPECT_EQ(outcome([](auto& b) { b[49] = 0; }), MadOutcome::kReservedBits) << "without the capability";
  EXPECT_EQ(outcome([](auto& b) { std::fill_n(b.begin() + 96, 16, 0); }), MadOutcome::kBadValue);
  EXPECT_EQ(outcome([](auto& b) { b[120] = 1; }), MadOutcome::kReservedBits);
  EXPECT_EQ(outcome([](auto& b) { b[255] = 1; }), MadOutcome::kReservedBits);
}

TEST(CapabilityMad, only_the_matching_response_answers_a_request) {
  const CapabilityMessage request = example_request();
  CapabilityMessage response = example_request();
  response.response = true;
  response.peer_incarnation = request.offer.incarnation;
  EXPECT_TRUE(answers(response, request));
  EXPECT_FALSE(answers(request, request));
  EXPECT_FALSE(answers(response, response));
  CapabilityMessage other = response;
  ++other.transaction;
  EXPECT_FALSE(answers(other, request));
  other = response;
  ++other.peer_incarnation;
  EXPECT_FALSE(answers(other, request)) << "for a host that has restarted since";
}

TEST(CapabilityAgreement, is_symmetric_and_contains_only_common_capabilities) {
  Rng rng{43};
  for (int round = 0; round < 5000; ++round) {
    const CapabilityOffer one = random_message(rng).offer, other = random_message(rng).offer;
    const auto agreement = agree(one, other);
    ASSERT_TRUE(agreement);
    EXPECT_EQ(agreement, agree(other, one));
    EXPECT_EQ(agreement->capabilities & ~(one.capabilities & other.capabilities), 0U);
    EXPECT_EQ(agreement->extensions() & ~known_extensions(), 0U);
    EXPECT_LE(agreement->mtu_extra, std::min(one.mtu_extra, other.mtu_extra));
    EXPECT_LE(agreement->int_hops, kMaxIntHops);
    // An agreement is stable: the offer of its capabilities leads to the same agreement.
    CapabilityOffer settled = one;
    settled.capabilities = agreement->capabilities;
    EXPECT_EQ(agree(settled, settled)->capabilities, agreement->capabilities);
  }
}

TEST(CapabilityAgreement, omits_capabilities_without_their_counterpart) {
  CapabilityOffer all;
  all.capabilities = ~0U;
  all.int_hops = 8;
  all.window = 32;
  const uint32_t everything = kAllCapabilities | known_extensions();
  EXPECT_EQ(agree(all, all)->capabilities, everything);
  const auto without = [&](uint32_t missing) {
    CapabilityOffer less = all;
    less.capabilities &= ~missing;
    return everything & ~agree(all, less)->capabilities;
  };
  const uint32_t ts = bit_of(ExtensionType::kTimestamp), echo = bit_of(ExtensionType::kTimestampEcho);
  EXPECT_EQ(without(0), 0U);
  EXPECT_EQ(without(ts), ts | echo);
  EXPECT_EQ(without(echo), ts | echo);
  EXPECT_EQ(without(bit(Capability::kDataBlocks)),
            bit(Capability::kDataBlocks) | ts | echo | bit_of(ExtensionType::kSourceQp));
  EXPECT_EQ(without(bit_of(ExtensionType::kRxWindow)),
            bit_of(ExtensionType::kRxWindow) | bit(Capability::kWindowMessages));
  EXPECT_EQ(without(bit(Capability::kProbes)), bit(Capability::kProbes));
  CapabilityOffer none = all;
  none.window = 0;
  none.int_hops = 0;
  EXPECT_EQ(everything & ~agree(all, none)->capabilities,
            bit(Capability::kSelectiveRepeat) | bit_of(ExtensionType::kIntEcho));
  EXPECT_FALSE(agree(all, none)->has(Capability::kSelectiveRepeat));
  EXPECT_TRUE(agree(all, none)->has(Capability::kReadAcks));
}

TEST(CapabilityAgreement, network_key_adds_auth_if_both_hosts_offer_it) {
  CapabilityOffer keyed = signed_request().offer;
  keyed.capabilities = bit(Capability::kNetworkAuth);
  ASSERT_TRUE(agree(keyed, keyed));
  EXPECT_EQ(agree(keyed, keyed)->capabilities, bit(Capability::kNetworkAuth) | bit_of(ExtensionType::kAuth));
  CapabilityOffer plain;
  plain.capabilities = bit_of(ExtensionType::kAuth) | bit(Capability::kNetworkAuth);
  EXPECT_EQ(agree(keyed, plain)->capabilities, 0U) << "the bit has no meaning in version 1";
}

TEST(CapabilityAgreement, fails_without_common_version) {
  CapabilityOffer old, newer;
  newer.version = 3;
  newer.lowest = 2;
  EXPECT_FALSE(agree(old, newer));
  newer.lowest = 1;
  ASSERT_TRUE(agree(old, newer));
  EXPECT_EQ(agree(old, newer)->version, 1);
}

// The frame is a standard datagram for parsers and captures.
TEST(CapabilityMad, is_sent_as_standard_datagram_to_management_queue_pair) {
  const ByteVector mad = bytes_of(build_capability_mad(example_request()));
  Packet packet = make_packet(Opcode::kUdSendOnly).to(kManagementQp, Psn{0}).with_payload(mad);
  packet.deth = DethValues{kManagementQKey, 0, kManagementQp};
  const ByteVector frame = encode_packet(packet.finish());
  const auto length = static_cast<uint32_t>(frame.size());
  const FrameView view = parse_frame(frame.data(), length, length);
  ASSERT_EQ(view.kind, FrameKind::kRoce);
  EXPECT_EQ(check_payload(*view.opcode, view.payload_length, view.pad, 256), PayloadCheck::kRight)
      << "fits the smallest path MTU";
  EXPECT_FALSE(view.bth().has_extensions());
  EXPECT_EQ(hex_text({frame.data() + view.bth_offset + 12, 8}), "8001000000000001");
  EXPECT_EQ(parse_capability_mad({frame.data() + view.payload_offset, view.payload_length}).outcome,
            MadOutcome::kAccepted);
}

}  // namespace
}  // namespace roci
