#include "wire/net/pause.hpp"

#include <gtest/gtest.h>

#include "wire/roce/packet_fields.hpp"
#include "wire/wire_test_support.hpp"

namespace roci {
namespace {

using test::from_hex;

const MacAddress kOwn{{0x02, 0, 0, 0, 0, 0x0a}};
const MacAddress kPeer{{0x02, 0, 0, 0, 0, 0x0b}};

ByteVector built(const PauseMessage& message) {
  ByteVector frame(kPauseFrameBytes, 0xee);
  build_pause(message, std::span<uint8_t, kPauseFrameBytes>(frame.data(), kPauseFrameBytes));
  return frame;
}

PauseMessage pfc() {
  PauseMessage message;
  message.source = kPeer;
  message.classes = 0x28;
  message.quanta[3] = 0xffff;
  message.quanta[5] = 0x0102;
  return message;
}

// 802.3 31B.1 and 31.4.1: opcode, quanta, and zero padding up to 60 bytes.
TEST(Pause, link_pause_frame_matches_802_3) {
  PauseMessage message;
  message.source = kPeer;
  message.kind = PauseKind::kLink;
  message.classes = 0xff;
  message.quanta.fill(0x1234);
  auto wanted = from_hex("0180c2000001 02000000000b 8808 0001 1234");
  wanted.resize(60);
  EXPECT_EQ(hex_text(built(message)), hex_text(wanted));
  const ParsedPause parsed = parse_pause(wanted, kOwn);
  EXPECT_EQ(parsed.outcome, PauseOutcome::kAccepted);
  EXPECT_EQ(parsed.message, message);
}

// 802.3 31D.1: opcode, class enable vector, and one time per priority from 0 on.
TEST(Pause, priority_pause_frame_matches_802_1qbb) {
  auto wanted = from_hex("0180c2000001 02000000000b 8808 0101 0028 0000 0000 0000 ffff 0000 0102 0000 0000");
  wanted.resize(60);
  EXPECT_EQ(hex_text(built(pfc())), hex_text(wanted));
  const ParsedPause parsed = parse_pause(wanted, kOwn);
  EXPECT_EQ(parsed.outcome, PauseOutcome::kAccepted);
  EXPECT_EQ(parsed.message, pfc());
  EXPECT_TRUE(parsed.message.includes(3));
  EXPECT_FALSE(parsed.message.includes(4));
}

TEST(Pause, round_trip_preserves_any_message) {
  Rng rng{1};
  for (int round = 0; round < 1000; ++round) {
    PauseMessage message;
    message.source = MacAddress::local(rng.next());
    message.kind = rng.chance(0.2) ? PauseKind::kLink : PauseKind::kPriority;
    message.classes = message.kind == PauseKind::kLink ? uint8_t{0xff} : static_cast<uint8_t>(rng.next());
    const auto all = static_cast<uint16_t>(rng.next());
    for (unsigned p = 0; p < kPriorities; ++p) {
      if (message.kind == PauseKind::kLink) {
        message.quanta[p] = all;
      } else if (message.includes(p)) {
        message.quanta[p] = static_cast<uint16_t>(rng.next());
      }
    }
    const ParsedPause parsed = parse_pause(built(message), kOwn);
    ASSERT_EQ(parsed.outcome, PauseOutcome::kAccepted);
    ASSERT_EQ(parsed.message, message);
  }
}

// Times of priorities that are not enabled, the reserved half of the vector and the padding are ignored.
TEST(Pause, reserved_fields_are_ignored) {
  ByteVector frame = built(pfc());
  frame[16] = 0xff;
  frame[18] = 0xff;
  frame[59] = 0xff;
  EXPECT_EQ(parse_pause(frame, kOwn).message, pfc());
  frame.resize(14 + 4 + 16);  // without padding
  EXPECT_EQ(parse_pause(frame, kOwn).outcome, PauseOutcome::kAccepted);
  frame = built({kPeer, PauseKind::kLink, 0xff, {9, 9, 9, 9, 9, 9, 9, 9}});
  frame.resize(18);
  EXPECT_EQ(parse_pause(frame, kOwn).outcome, PauseOutcome::kAccepted);
}

TEST(Pause, every_error_has_a_specific_outcome) {
  const ByteVector right = built(pfc());
  const auto outcome = [](ByteVector frame) {
    frame.shrink_to_fit();
    return parse_pause(frame, kOwn).outcome;
  };
  for (size_t length = 0; length < 34; ++length)
    EXPECT_EQ(outcome({right.begin(), right.begin() + static_cast<ptrdiff_t>(length)}),
              PauseOutcome::kTruncated)
        << length;
  ByteVector frame = right;
  frame[13] = 0x09;
  EXPECT_EQ(outcome(frame), PauseOutcome::kNotMacControl);
  frame = right;
  frame.insert(frame.begin() + 12, {0x81, 0x00, 0x60, 0x05});
  EXPECT_EQ(outcome(frame), PauseOutcome::kNotMacControl);
  frame = right;
  frame[15] = 0x02;
  EXPECT_EQ(outcome(frame), PauseOutcome::kUnknownOpcode);
  frame = right;
  std::copy(kOwn.bytes.begin(), kOwn.bytes.end(), frame.begin());
  EXPECT_EQ(outcome(frame), PauseOutcome::kOtherDestination) << "PFC to a station";
  frame[14] = 0;
  EXPECT_EQ(outcome(frame), PauseOutcome::kAccepted) << "PAUSE to this station";
  frame[5] = 0x77;
  EXPECT_EQ(outcome(frame), PauseOutcome::kOtherDestination) << "PAUSE to another station";
  for (unsigned i = 0; i < kPauseOutcomeCount; ++i)
    EXPECT_FALSE(pause_outcome_name(static_cast<PauseOutcome>(i)).empty());
}

TEST(PauseTime, quantum_is_512_bit_times_rounded_up) {
  EXPECT_EQ(pause_time(0, 10_Gbps), 0ns);
  EXPECT_EQ(pause_time(1, 10_Gbps), 52ns);  // rounded up from 51.2
  EXPECT_EQ(pause_time(5, 10_Gbps), 256ns);
  EXPECT_EQ(pause_time(0xffff, 100_Gbps), 335'540ns);  // rounded up from 335539.2
  EXPECT_EQ(pause_time(1, 1_Mbps), 512us);
  EXPECT_EQ(pause_quanta(0ns, 10_Gbps), 0);
  EXPECT_EQ(pause_quanta(1ns, 10_Gbps), 1);
  EXPECT_EQ(pause_quanta(256ns, 10_Gbps), 5);
  EXPECT_EQ(pause_quanta(257ns, 10_Gbps), 6);
}

TEST(PauseTime, conversion_handles_extreme_rates) {
  const BitsPerSec most{UINT64_MAX};
  EXPECT_EQ(pause_time(0xffff, BitsPerSec{1}), Nanos{65535LL * 512 * 1'000'000'000});
  EXPECT_EQ(pause_time(0xffff, most), 1ns);
  EXPECT_EQ(pause_time(0, most), 0ns);
  EXPECT_EQ(pause_time(0xffff, BitsPerSec{}), 0ns) << "no limit";
  EXPECT_EQ(pause_quanta(kNever, most), 0xffff);
  EXPECT_EQ(pause_quanta(kNever, BitsPerSec{1}), 0xffff);
  EXPECT_EQ(pause_quanta(1s, BitsPerSec{1}), 1);
  EXPECT_EQ(pause_quanta(1s, 10_Gbps), 0xffff);
  EXPECT_EQ(pause_quanta(1ns, BitsPerSec{}), 0xffff);
  EXPECT_EQ(pause_quanta(-1ns, 10_Gbps), 0);
}

TEST(PauseTime, round_trip_never_shrinks_and_grows_within_rounding) {
  Rng rng{2};
  for (int round = 0; round < 20'000; ++round) {
    const BitsPerSec rate{rng.next() >> rng.below(64) | 1};
    const auto quanta = static_cast<uint16_t>(rng.next());
    const uint64_t back = pause_quanta(pause_time(quanta, rate), rate);
    const uint64_t slack = rate.value() / 512'000'000'000 + 1;
    ASSERT_GE(back, quanta) << rate.value();
    ASSERT_LE(back, quanta + slack) << rate.value();
  }
}

}  // namespace
}  // namespace roci
