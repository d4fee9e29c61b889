#include "wire/mad/cm_messages.hpp"

#include <gtest/gtest.h>

#include <string>

#include "support/captured_mads.hpp"
#include "wire/wire_test_support.hpp"

namespace roci {
namespace {

using test::from_hex;
using test::heard_in;
using test::HeardMad;
using test::random_bytes;

std::vector<std::string> names_of(const std::vector<HeardMad>& heard) {
  std::vector<std::string> out;
  for (const HeardMad& h : heard) out.emplace_back(cm_message_name(h.mad.message));
  return out;
}

const char* const kCaptures[] = {"rping.pcap", "ucmatose.pcap", "cm_refused.pcap"};

TEST(CmMessages, rebuilt_messages_equal_linux_captures) {
  size_t messages = 0;
  for (const char* name : kCaptures) {
    for (const HeardMad& heard : heard_in(name)) {
      const auto again = build_cm_mad(heard.mad);
      EXPECT_EQ(ByteVector(again.begin(), again.end()), heard.bytes)
          << name << ": " << cm_message_name(heard.mad.message);
      ++messages;
    }
  }
  EXPECT_EQ(messages, 5U + 10U + 2U);
}

TEST(CmMessages, captures_follow_specified_message_order) {
  EXPECT_EQ(names_of(heard_in("rping.pcap")),
            (std::vector<std::string>{"REQ", "REP", "RTU", "DREQ", "DREP"}));
  EXPECT_EQ(names_of(heard_in("cm_refused.pcap")), (std::vector<std::string>{"REQ", "REJ"}));
}

TEST(CmMessages, parsed_fields_match_known_captures) {
  const auto heard = heard_in("rping.pcap");
  ASSERT_EQ(heard.size(), 5U);
  const auto& request = std::get<CmRequest>(heard[0].mad.message);
  EXPECT_EQ(request.service_id, cm_service_id(CmPortSpace::kTcp, 7174));
  EXPECT_EQ(request.remote_response_timeout, 20);
  EXPECT_EQ(request.local_response_timeout, 20);
  EXPECT_EQ(request.retry_count, 7);
  EXPECT_EQ(request.rnr_retry_count, 7);
  EXPECT_EQ(request.path_mtu, 3);
  EXPECT_EQ(request.max_cm_retries, 15);
  EXPECT_EQ(request.pkey, 0xffff);
  EXPECT_EQ(request.transport, CmTransport::kRc);
  EXPECT_EQ(request.primary.local_lid, 0xffff);
  EXPECT_EQ(request.primary.local_gid, *IpAddress::parse("10.77.0.2"));
  EXPECT_EQ(request.primary.remote_gid, *IpAddress::parse("10.77.0.1"));
  EXPECT_EQ(request.primary.hop_limit, 64);
  EXPECT_EQ(request.primary.ack_timeout, 17);
  const auto ip = read_cm_ip_header(request.private_data);
  ASSERT_TRUE(ip);
  EXPECT_EQ(ip->source, request.primary.local_gid);
  EXPECT_EQ(ip->destination, request.primary.remote_gid);
  EXPECT_FALSE(ip->v6);

  const auto& reply = std::get<CmReply>(heard[1].mad.message);
  EXPECT_EQ(reply.remote_id, request.local_id);
  EXPECT_EQ(reply.target_ack_delay, 15);
  EXPECT_EQ(reply.rnr_retry_count, 7);
  EXPECT_EQ(reply.responder_resources, 1);
  EXPECT_EQ(reply.initiator_depth, 1);
  const auto& disconnect = std::get<CmDisconnect>(heard[3].mad.message);
  const bool by_client = disconnect.local_id == request.local_id;
  EXPECT_EQ(disconnect.remote_queue_pair, by_client ? reply.queue_pair : request.queue_pair);
  for (const HeardMad& h : heard) EXPECT_EQ(h.mad.transaction, heard[0].mad.transaction);

  const auto refused = heard_in("cm_refused.pcap");
  const auto& rejected = std::get<CmRejected>(refused[1].mad.message);
  EXPECT_EQ(rejected.reason, CmRejected::kInvalidServiceId);
  EXPECT_EQ(rejected.local_id, 0U);
  EXPECT_EQ(rejected.remote_id, std::get<CmRequest>(refused[0].mad.message).local_id);
  EXPECT_EQ(rejected.answered, CmAnswered::kRequest);
}

TEST(CmMessages, queue_pairs_match_later_data_packets) {
  for (const auto& [name, connections] : {std::pair{"rping.pcap", 1U}, std::pair{"ucmatose.pcap", 2U}}) {
    std::vector<RoceFlow> flows;
    const auto heard = heard_in(name, &flows);
    unsigned replies = 0;
    for (const HeardMad& answer : heard) {
      const auto* reply = std::get_if<CmReply>(&answer.mad.message);
      if (reply == nullptr) continue;
      ++replies;
      const CmRequest* request = nullptr;
      for (const HeardMad& h : heard) {
        const auto* candidate = std::get_if<CmRequest>(&h.mad.message);
        if (candidate != nullptr && candidate->local_id == reply->remote_id) request = candidate;
      }
      ASSERT_NE(request, nullptr) << name;
      const RoceFlow there{answer.flow.destination, answer.flow.source, reply->queue_pair};
      const RoceFlow back{answer.flow.source, answer.flow.destination, request->queue_pair};
      EXPECT_NE(std::find(flows.begin(), flows.end(), there), flows.end()) << name;
      EXPECT_NE(std::find(flows.begin(), flows.end(), back), flows.end()) << name;
    }
    EXPECT_EQ(replies, connections);
  }
}

// Random messages: every field is preserved by decoding and encoding, and no other bit is set.
TEST(CmMessages, parse_and_build_preserve_every_field) {
  Rng rng(7);
  for (uint16_t attribute = CmRequest::kAttribute; attribute <= CmPathAnswer::kAttribute; ++attribute) {
    for (unsigned turn = 0; turn < 200; ++turn) {
      ByteVector mad = random_bytes(rng, kMadBytes);
      mad[0] = 1, mad[1] = 7, mad[2] = 2, mad[3] = 3, mad[4] = mad[5] = 0;
      mad[16] = 0, mad[17] = static_cast<uint8_t>(attribute);
      const ParsedCm parsed = parse_cm_mad(mad);
      ASSERT_EQ(parsed.outcome, CmOutcome::kAccepted);
      const auto again = build_cm_mad(parsed.mad);
      for (size_t at = 0; at < kMadBytes; ++at)  // only reserved bits may be cleared
        ASSERT_EQ(again[at] & ~mad[at], 0) << cm_message_name(parsed.mad.message) << " byte " << at;
      const ParsedCm second = parse_cm_mad(again);
      ASSERT_EQ(second.mad, parsed.mad) << cm_message_name(parsed.mad.message);
    }
  }
}

// Number of non-reserved bits after the header of each message.
TEST(CmMessages, have_specified_number_of_bits) {
  const auto bits_kept = [](uint16_t attribute) {
    ByteVector mad(kMadBytes, 0xff);
    mad[0] = 1, mad[1] = 7, mad[2] = 2, mad[3] = 3, mad[4] = mad[5] = 0;
    mad[16] = 0, mad[17] = static_cast<uint8_t>(attribute);
    const auto again = build_cm_mad(parse_cm_mad(mad).mad);
    unsigned out = 0;
    for (size_t at = 24; at < kMadBytes; ++at) out += static_cast<unsigned>(std::popcount(again[at]));
    return out;
  };
  constexpr unsigned kAll = 232 * 8, kPath = 6 + 3 + 3;
  EXPECT_EQ(bits_kept(CmRequest::kAttribute), kAll - 8 - 32 - 2 * kPath);
  EXPECT_EQ(bits_kept(CmAcknowledged::kAttribute), kAll - 6 - 3);
  EXPECT_EQ(bits_kept(CmRejected::kAttribute), kAll - 6 - 1);
  EXPECT_EQ(bits_kept(CmReply::kAttribute), kAll - 4);
  EXPECT_EQ(bits_kept(CmReady::kAttribute), kAll);
  EXPECT_EQ(bits_kept(CmDisconnect::kAttribute), kAll - 8);
  EXPECT_EQ(bits_kept(CmDisconnected::kAttribute), kAll);
  EXPECT_EQ(bits_kept(CmServiceRequest::kAttribute), kAll - 16);
  EXPECT_EQ(bits_kept(CmServiceReply::kAttribute), kAll);
  EXPECT_EQ(bits_kept(CmLoadPath::kAttribute), kAll - 32 - 3 - 32 - kPath);
  EXPECT_EQ(bits_kept(CmPathAnswer::kAttribute), kAll - 16);
}

TEST(CmMessages, foreign_and_malformed_messages_are_rejected_by_reason) {
  ByteVector mad(kMadBytes);
  mad[0] = 1, mad[1] = 7, mad[2] = 2, mad[3] = 3, mad[17] = 0x10;
  EXPECT_EQ(parse_cm_mad(mad).outcome, CmOutcome::kAccepted);
  EXPECT_EQ(parse_cm_mad(std::span(mad).first(255)).outcome, CmOutcome::kBadSize);
  EXPECT_EQ(parse_cm_mad({}).outcome, CmOutcome::kBadSize);
  const std::pair<size_t, CmOutcome> kWrong[] = {
      {0, CmOutcome::kBadBaseVersion}, {1, CmOutcome::kOtherClass}, {2, CmOutcome::kBadClassVersion},
      {3, CmOutcome::kOtherMethod},    {5, CmOutcome::kBadStatus},  {16, CmOutcome::kUnknownMessage},
      {17, CmOutcome::kUnknownMessage}};
  for (const auto& [at, outcome] : kWrong) {
    ByteVector other = mad;
    other[at] ^= 0x20;
    EXPECT_EQ(parse_cm_mad(other).outcome, outcome) << at;
  }
}

TEST(CmIpHeader, round_trip_preserves_header_with_ipv4_in_last_four_bytes) {
  std::array<uint8_t, CmIpHeader::kBytes> bytes{};
  const CmIpHeader v4{false, 0xabcd, *IpAddress::parse("10.77.0.2"), *IpAddress::parse("10.77.0.1")};
  write_cm_ip_header(v4, bytes);
  EXPECT_EQ(ByteVector(bytes.begin(), bytes.end()),
            from_hex("00 40 abcd 000000000000000000000000 0a4d0002 000000000000000000000000 0a4d0001"));
  EXPECT_EQ(read_cm_ip_header(bytes), v4);
  const CmIpHeader v6{true, 1, *IpAddress::parse("fd77::2"), *IpAddress::parse("fd77::1")};
  write_cm_ip_header(v6, bytes);
  EXPECT_EQ(read_cm_ip_header(bytes), v6);
  for (const auto& [at, value] : {std::pair{0, 0x10}, std::pair{1, 0x50}, std::pair{1, 0}}) {
    auto wrong = bytes;
    wrong[static_cast<size_t>(at)] = static_cast<uint8_t>(value);
    EXPECT_FALSE(read_cm_ip_header(wrong));
  }
}

}  // namespace
}  // namespace roci
