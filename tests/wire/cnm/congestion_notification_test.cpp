#include "wire/cnm/congestion_notification.hpp"

#include <gtest/gtest.h>

#include "wire/roce/packet_fields.hpp"
#include "wire/wire_test_support.hpp"

namespace roci {
namespace {

using test::from_hex;

const MacAddress kSwitch{{0x02, 0, 0, 0, 0, 0xaa}};

// A QCN frame whose MSDU is 64 bytes after the EtherType: priority 3 in the S-TAG, 5 in the C-TAG, flow a878.
ByteVector sampled_frame(size_t msdu = 66) {
  ByteVector frame = from_hex("020000000002 020000000001 88a8 7001 8100 a005 22e9 a878 0800");
  for (size_t i = 2; i < msdu; ++i) frame.push_back(static_cast<uint8_t>(i));
  return frame;
}

Cnm cnm_about(std::span<const uint8_t> sampled) {
  Cnm cnm = *sample_frame(sampled);
  cnm.feedback = 21;
  cnm.point = {kSwitch, Be16{0x0305}};
  cnm.queue_offset = cnm_queue_units(24000);
  cnm.queue_delta = cnm_queue_units(-10000);
  return cnm;
}

void expect_same(const Cnm& a, const Cnm& b) {
  EXPECT_EQ(a.feedback, b.feedback);
  EXPECT_EQ(a.point, b.point);
  EXPECT_EQ(a.queue_offset, b.queue_offset);
  EXPECT_EQ(a.queue_delta, b.queue_delta);
  EXPECT_EQ(a.priority, b.priority);
  EXPECT_EQ(a.destination, b.destination);
  EXPECT_EQ(hex_text(a.msdu), hex_text(b.msdu));
}

// A queue samples a frame and notifies its sender. Expects the frame of 802.1Q 33.3: to the sender, with its VLAN
// tags at CNM priority and drop eligibility off, its CN-TAG, the PDU, and 64 bytes of the sampled frame.
TEST(Cnm, frame_matches_802_1q) {
  const ByteVector sampled = sampled_frame(100);
  const Cnm cnm = cnm_about(sampled);
  ByteVector out(kMaxCnmFrame, 0xee);
  const auto link = CnmLink::answering(sampled, kSwitch);
  ASSERT_TRUE(link);
  ASSERT_EQ(build_cnm_frame(*link, cnm, out), kMaxCnmFrame);
  auto wanted = from_hex(
      "020000000001 0200000000aa 88a8 c001 8100 c005 22e9 a878 22e7"
      "0015 0200000000aa0305 0177 ff64 6000 020000000002 0040 0800");
  for (uint8_t i = 2; i < 64; ++i) wanted.push_back(i);
  EXPECT_EQ(hex_text(out), hex_text(wanted));

  const ParsedCnmFrame parsed = parse_cnm_frame(out);
  ASSERT_EQ(parsed.outcome, CnmOutcome::kAccepted);
  EXPECT_EQ(parsed.link.destination, link->destination);
  EXPECT_EQ(parsed.link.source, kSwitch);
  EXPECT_EQ(parsed.link.tags, link->tags);
  EXPECT_EQ(parsed.link.tags.flow, 0xa878);
  expect_same(parsed.cnm, cnm);
}

TEST(Cnm, untagged_frame_gives_no_tags_and_default_priority) {
  const auto sampled = from_hex("020000000002 020000000001 0800 4500");
  const auto cnm = sample_frame(sampled, 4);
  ASSERT_TRUE(cnm);
  EXPECT_EQ(cnm->priority, 4);
  EXPECT_EQ(hex_text(cnm->msdu), "08004500");
  ByteVector out(kMaxCnmFrame);
  out.resize(build_cnm_frame(*CnmLink::answering(sampled, kSwitch), *cnm, out));
  EXPECT_EQ(hex_text(out), hex_text(from_hex("020000000001 0200000000aa 22e7"
                                             "0000 0000000000000000 0000 0000 8000 020000000002 0004"
                                             "0800 4500")));
  EXPECT_FALSE(sample_frame(std::span(sampled).first(13)));
  EXPECT_FALSE(CnmLink::answering(std::span(sampled).first(13), kSwitch));
}

TEST(Cnm, round_trip_preserves_any_pdu) {
  Rng rng{4};
  for (int round = 0; round < 2000; ++round) {
    const ByteVector msdu = test::random_bytes(rng, rng.below(kMaxCnmMsdu + 1));
    Cnm cnm;
    cnm.feedback = static_cast<uint8_t>(rng.below(64));
    cnm.point = {MacAddress::local(rng.next()), Be16{static_cast<uint16_t>(rng.next())}};
    cnm.queue_offset = static_cast<int16_t>(rng.next());
    cnm.queue_delta = static_cast<int16_t>(rng.next());
    cnm.priority = static_cast<uint8_t>(rng.below(8));
    cnm.destination = MacAddress::local(rng.next());
    cnm.msdu = msdu;
    ByteVector bytes(cnm.pdu_bytes());
    write_cnm(cnm, bytes.data());
    const ParsedCnm parsed = parse_cnm(bytes);
    ASSERT_EQ(parsed.outcome, CnmOutcome::kAccepted);
    expect_same(parsed.cnm, cnm);
  }
}

TEST(Cnm, queue_values_use_64_byte_units_and_saturate) {
  EXPECT_EQ(cnm_queue_units(0), 0);
  EXPECT_EQ(cnm_queue_units(63), 0);
  EXPECT_EQ(cnm_queue_units(-63), 0);
  EXPECT_EQ(cnm_queue_units(64), 1);
  EXPECT_EQ(cnm_queue_units(-64), -1);
  EXPECT_EQ(cnm_queue_units(32767 * 64 + 63), 32767);
  EXPECT_EQ(cnm_queue_units(32768 * 64), 32767);
  EXPECT_EQ(cnm_queue_units(-32768 * 64), -32768);
  EXPECT_EQ(cnm_queue_units(INT64_MAX), 32767);
  EXPECT_EQ(cnm_queue_units(INT64_MIN), -32768);
  Cnm cnm;
  cnm.feedback = 200;
  ByteVector bytes(cnm.pdu_bytes());
  write_cnm(cnm, bytes.data());
  EXPECT_EQ(parse_cnm(bytes).cnm.feedback, kMaxCnmFeedback);
}

TEST(Cnm, every_error_has_a_specific_outcome) {
  const ByteVector sampled = sampled_frame();
  const Cnm cnm = cnm_about(sampled);
  ByteVector right(cnm.pdu_bytes());
  write_cnm(cnm, right.data());
  ASSERT_EQ(right.size(), 24 + 64U);
  for (size_t length = 0; length < right.size(); ++length) {
    ByteVector cut(right.begin(), right.begin() + static_cast<ptrdiff_t>(length));
    cut.shrink_to_fit();
    EXPECT_EQ(parse_cnm(cut).outcome, length < 24 ? CnmOutcome::kTruncated : CnmOutcome::kMsduBeyondEnd)
        << length;
  }
  const auto with = [&right](size_t at, uint8_t value) {
    ByteVector bytes = right;
    bytes[at] = value;
    return parse_cnm(bytes).outcome;
  };
  EXPECT_EQ(with(0, 0x10), CnmOutcome::kBadVersion);
  EXPECT_EQ(with(0, 0x80), CnmOutcome::kBadVersion);
  EXPECT_EQ(with(0, 0x08), CnmOutcome::kReservedBits);
  EXPECT_EQ(with(1, 0x40), CnmOutcome::kReservedBits);
  EXPECT_EQ(with(1, 0x3f), CnmOutcome::kAccepted);
  EXPECT_EQ(with(23, 65), CnmOutcome::kMsduTooLong);
  EXPECT_EQ(with(22, 1), CnmOutcome::kMsduTooLong);
  EXPECT_EQ(with(23, 0), CnmOutcome::kAccepted) << "what follows is padding";
  EXPECT_EQ(with(15, 0xff), CnmOutcome::kAccepted) << "below the priority";

  ByteVector frame(kMaxCnmFrame);
  frame.resize(build_cnm_frame(*CnmLink::answering(sampled, kSwitch), cnm, frame));
  for (size_t length = 0; length < frame.size(); ++length) {
    ByteVector cut(frame.begin(), frame.begin() + static_cast<ptrdiff_t>(length));
    cut.shrink_to_fit();
    EXPECT_EQ(parse_cnm_frame(cut).outcome,
              length < 26 + 24 ? CnmOutcome::kTruncated : CnmOutcome::kMsduBeyondEnd)
        << length;
  }
  frame[25] = 0xe8;
  EXPECT_EQ(parse_cnm_frame(frame).outcome, CnmOutcome::kNotCnm);
  for (unsigned i = 0; i < kCnmOutcomeCount; ++i)
    EXPECT_FALSE(cnm_outcome_name(static_cast<CnmOutcome>(i)).empty());
}

}  // namespace
}  // namespace roci
