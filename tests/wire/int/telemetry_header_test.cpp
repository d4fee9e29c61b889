// Parsing of INT headers and hops. Edits by switches are tested in telemetry_edit_test.cpp.
#include "wire/int/telemetry_header.hpp"

#include <gtest/gtest.h>

#include "wire/int/telemetry_values.hpp"
#include "wire/roce/packet_fields.hpp"
#include "wire/wire_test_support.hpp"

namespace roci {
namespace {

using test::from_hex;
using test::kTelemetryDomain;
using test::kTelemetryPort;

constexpr size_t kShimAt = 14 + 20 + 8;
constexpr size_t kHeaderAt = kShimAt + 4;
constexpr size_t kStackAt = kHeaderAt + 12;

// An ACK with two compact hops, written by hand. The last switch reported no values.
ByteVector two_hops() {
  return from_hex(
      "020000000002 020000000001 0800 4502006000014000401126880a0000010a000002"
      "c0001388004c0000"
      "140b12b7 2000040e 00000007 80008000"
      "ffffffff ffffffff ffffffff ffffffff"
      "12345678 0a0b0c0d 00000200 29c41bb8"
      "1140ffff0000001100123456 1f000005 6d4ab86b");
}

IntOutcome int_outcome(ByteVector frame) {
  frame.shrink_to_fit();
  return parse_int(frame, static_cast<uint32_t>(frame.size()), kTelemetryPort).outcome;
}
IntOutcome int_outcome_with(size_t at, uint8_t value) {
  ByteVector frame = two_hops();
  frame[at] = value;
  return int_outcome(frame);
}

TEST(Int, hops_are_read_newest_first) {
  const ByteVector frame = two_hops();
  const IntView view = parse_int(frame, static_cast<uint32_t>(frame.size()), kTelemetryPort);
  ASSERT_EQ(view.outcome, IntOutcome::kAccepted) << int_outcome_name(view.outcome);
  EXPECT_EQ(view.shim().next.get(), kRoceUdpPort);
  EXPECT_EQ(view.header().hop_words(), 4);
  EXPECT_EQ(view.header().hops_left(), 14);
  EXPECT_FALSE(
      view.header().has(IntMdHeader::kDiscard | IntMdHeader::kHopsExceeded | IntMdHeader::kMtuExceeded));
  EXPECT_EQ(view.hop_count, 2);
  EXPECT_EQ(view.bytes(), 16 + 2 * 16);
  EXPECT_EQ(view.stack_offset(), kStackAt);
  EXPECT_FALSE(view.hop(0, kTelemetryDomain));
  const auto hop = view.hop(1, kTelemetryDomain);
  ASSERT_TRUE(hop);
  EXPECT_EQ(hop->switch_id, 0x12345);
  EXPECT_EQ(hop->port, 0x678);
  EXPECT_EQ(hop->time, 0x0a0b0c0d);
  EXPECT_EQ(hop->tx_units, 0x200);
  EXPECT_EQ(hop->rate(), 10_Gbps);
  EXPECT_EQ(hop->queue_bytes.value(), 6000);
  EXPECT_FALSE(view.hop(2, kTelemetryDomain));
  EXPECT_FALSE(view.hop(1, kTelemetryDomain + 1)) << "of another domain";
  EXPECT_EQ(view.full(1, kTelemetryDomain), nullptr);
  EXPECT_TRUE(view.wants_response(kTelemetryDomain));
  EXPECT_FALSE(view.wants_response(kTelemetryDomain + 1));
}

TEST(Int, frame_cut_within_its_stack_is_reported_truncated) {
  const ByteVector frame = two_hops();
  const auto length = static_cast<uint32_t>(frame.size());
  for (size_t head = 0; head < frame.size(); ++head) {
    const ByteVector part(frame.begin(), frame.begin() + static_cast<ptrdiff_t>(head));
    EXPECT_EQ(parse_int(part, length, kTelemetryPort).outcome,
              head < kStackAt + 32 ? IntOutcome::kTruncated : IntOutcome::kAccepted)
        << head;
    EXPECT_EQ(int_outcome(part), IntOutcome::kTruncated) << "a frame shorter than IP says";
  }
  ByteVector padded = frame;
  padded.resize(200);
  EXPECT_EQ(int_outcome(padded), IntOutcome::kAccepted);
}

TEST(Int, every_error_has_a_specific_outcome) {
  EXPECT_EQ(int_outcome_with(13, 0x06), IntOutcome::kNotInt);
  EXPECT_EQ(int_outcome_with(14 + 9, 6), IntOutcome::kNotInt) << "TCP";
  EXPECT_EQ(int_outcome_with(14 + 20 + 3, 0x89), IntOutcome::kNotInt) << "another port";
  EXPECT_EQ(int_outcome_with(14, 0x55), IntOutcome::kBadIp);
  EXPECT_EQ(int_outcome_with(14, 0x44), IntOutcome::kBadIp);
  EXPECT_EQ(int_outcome_with(14 + 3, 0x13), IntOutcome::kBadIp) << "total length below the header";
  EXPECT_EQ(int_outcome_with(14 + 3, 0x17), IntOutcome::kBadUdp) << "no room for UDP";
  EXPECT_EQ(int_outcome_with(14 + 6, 0x20), IntOutcome::kFragment);
  EXPECT_EQ(int_outcome_with(14 + 7, 0x01), IntOutcome::kFragment);
  EXPECT_EQ(int_outcome_with(14 + 20 + 5, 0x4b), IntOutcome::kBadUdp);
  EXPECT_EQ(int_outcome_with(kShimAt, 0x24), IntOutcome::kUnknownType) << "destination type";
  EXPECT_EQ(int_outcome_with(kShimAt, 0x34), IntOutcome::kUnknownType) << "INT-MX";
  EXPECT_EQ(int_outcome_with(kShimAt, 0x10), IntOutcome::kUnknownNext) << "by DSCP";
  EXPECT_EQ(int_outcome_with(kShimAt, 0x18), IntOutcome::kUnknownNext) << "behind a UDP header of its own";
  EXPECT_EQ(int_outcome_with(kShimAt, 0x17), IntOutcome::kAccepted) << "reserved bits";
  EXPECT_EQ(int_outcome_with(kHeaderAt, 0x10), IntOutcome::kBadVersion);
  EXPECT_EQ(int_outcome_with(kHeaderAt + 1, 0xff), IntOutcome::kAccepted) << "reserved bits";
  EXPECT_EQ(int_outcome_with(kShimAt + 1, 2), IntOutcome::kTooShort);
  EXPECT_EQ(int_outcome_with(kShimAt + 1, 3), IntOutcome::kAccepted) << "no hops";
  EXPECT_EQ(int_outcome_with(kShimAt + 1, 10), IntOutcome::kUnevenStack);
  EXPECT_EQ(int_outcome_with(kHeaderAt + 2, 0x03), IntOutcome::kUnevenStack) << "hops of 3 words";
  EXPECT_EQ(int_outcome_with(kHeaderAt + 2, 0x00), IntOutcome::kUnevenStack) << "hops of none";
  EXPECT_EQ(int_outcome_with(kShimAt + 1, 16), IntOutcome::kUnevenStack) << "16 words up to the end";
  EXPECT_EQ(int_outcome_with(kShimAt + 1, 17), IntOutcome::kBeyondPacket);
  EXPECT_EQ(int_outcome_with(kShimAt + 1, 255), IntOutcome::kBeyondPacket);
  for (unsigned i = 0; i < kIntOutcomeCount; ++i)
    EXPECT_FALSE(int_outcome_name(static_cast<IntOutcome>(i)).empty());
}

TEST(Int, rejects_packet_too_short_for_the_headers) {
  ByteVector frame = two_hops();
  frame[14 + 3] = 20 + 8 + 15;
  frame[14 + 20 + 5] = 8 + 15;
  EXPECT_EQ(int_outcome(frame), IntOutcome::kBeyondPacket);
}

TEST(Int, is_parsed_over_ipv6_and_after_tags) {
  auto frame = from_hex(
      "020000000002 020000000001 88a80001 8100a005 22e90009 86dd"
      "60000000 0018 1140 fd000000000000000000000000000001 fd000000000000000000000000000002"
      "c0001388 0018 0000 140312b7 20000410 00000007 80000000");
  EXPECT_EQ(int_outcome(frame), IntOutcome::kAccepted);
  const size_t ip = 14 + 12;
  frame[ip + 6] = kProtocolIpv6Fragment;
  EXPECT_EQ(int_outcome(frame), IntOutcome::kFragment);
  frame[ip + 6] = kProtocolIcmpv6;
  EXPECT_EQ(int_outcome(frame), IntOutcome::kNotInt);
  frame[ip + 6] = kProtocolUdp;
  frame[ip] = 0x40;
  EXPECT_EQ(int_outcome(frame), IntOutcome::kBadIp);
  frame[ip] = 0x60;
  frame[ip + 5] = 7;
  EXPECT_EQ(int_outcome(frame), IntOutcome::kBadUdp);
  frame[ip + 5] = 0x19;
  EXPECT_EQ(int_outcome(frame), IntOutcome::kTruncated);
}

HopReport large_report() {
  HopReport r;
  r.switch_id = 0xabc12345;
  r.ingress_port = 0x0102;
  r.egress_port = 0xf678;
  r.egress_time = 0x11223344'0a0b0c0dULL;
  r.tx_bytes = (uint64_t{5} << 35) + 0x1007;
  r.queue_bytes = 6001;
  r.rate = BitsPerSec{10'000'999'999};
  return r;
}

TEST(HopReport, counters_wrap_and_amounts_saturate) {
  const IntHopValues hop = compact_hop(large_report());
  EXPECT_EQ(hop.switch_id, 0x12345);
  EXPECT_EQ(hop.port, 0x678);
  EXPECT_EQ(hop.time, 0x0a0b0c0d);
  EXPECT_EQ(hop.tx_units, 0x200) << "in units of 8 bytes, modulo 2^32";
  EXPECT_EQ(hop.rate(), 10_Gbps);
  EXPECT_EQ(hop.queue_bytes.value(), 6000);
  const FullHop full = full_hop(large_report());
  EXPECT_EQ(full.switch_id.get(), 0xabc12345);
  EXPECT_EQ(full.ingress_port.get(), 0x0102);
  EXPECT_EQ(full.egress_port.get(), 0xf678);
  EXPECT_EQ(full.time.get(), large_report().egress_time);
  EXPECT_EQ(full.tx_bytes.get(), large_report().tx_bytes);
  EXPECT_EQ(full.queue_bytes.get(), 6001);
  EXPECT_EQ(full.rate_mbps.get(), 10'000);
  HopReport most;
  most.queue_bytes = UINT64_MAX;
  most.rate = BitsPerSec{UINT64_MAX};
  EXPECT_EQ(compact_hop(most).queue_bytes.value(), ScaledCount::kMax);
  EXPECT_EQ(compact_hop(most).rate_mbps.value(), ScaledCount::kMax);
  EXPECT_EQ(full_hop(most).queue_bytes.get(), UINT32_MAX);
  EXPECT_EQ(full_hop(most).rate_mbps.get(), UINT32_MAX);
}

TEST(IntInstructions, lengths_match_the_standard) {
  EXPECT_EQ(int_baseline_bytes(0), 0);
  EXPECT_EQ(int_baseline_bytes(0x8000), 4);
  EXPECT_EQ(int_baseline_bytes(0x0800), 8);
  EXPECT_EQ(int_baseline_bytes(0x0400), 8);
  EXPECT_EQ(int_baseline_bytes(0x0200), 8);
  EXPECT_EQ(int_baseline_bytes(0x0001), 0) << "the complement is counted on its own";
  EXPECT_EQ(int_baseline_bytes(0xffff), 15 * 4 + 3 * 4);
  EXPECT_EQ(int_domain_bytes(0x8000), 16);
  EXPECT_EQ(int_domain_bytes(0x4000), 32);
  EXPECT_EQ(int_domain_bytes(0x3fff), 0);
}

}  // namespace
}  // namespace roci
