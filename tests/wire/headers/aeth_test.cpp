#include "wire/headers/aeth.hpp"

#include <gtest/gtest.h>

namespace roci {
namespace {

TEST(Aeth, syndromes_split_into_kind_and_value) {
  struct Row {
    unsigned syndrome;
    AethKind kind;
    unsigned value;
  };
  const Row rows[] = {
      {0x00, AethKind::kAck, 0},     {0x1f, AethKind::kAck, 31},    {0x20, AethKind::kRnrNak, 0},
      {0x2e, AethKind::kRnrNak, 14}, {0x3f, AethKind::kRnrNak, 31}, {0x40, AethKind::kReserved, 0},
      {0x60, AethKind::kNak, 0},     {0x61, AethKind::kNak, 1},     {0x64, AethKind::kNak, 4},
      {0x9f, AethKind::kAck, 31},  // bit 7 is reserved and ignored
  };
  for (const Row& row : rows) {
    EXPECT_EQ(aeth_kind(static_cast<uint8_t>(row.syndrome)), row.kind) << std::hex << row.syndrome;
    EXPECT_EQ(aeth_value(static_cast<uint8_t>(row.syndrome)), row.value) << std::hex << row.syndrome;
  }
  EXPECT_EQ(aeth_kind(kSyndromeAck), AethKind::kAck);
}

TEST(Aeth, nak_codes_match_specification) {
  EXPECT_EQ(nak_syndrome(NakCode::kPsnSequenceError), 0x60);
  EXPECT_EQ(nak_syndrome(NakCode::kInvalidRequest), 0x61);
  EXPECT_EQ(nak_syndrome(NakCode::kRemoteAccessError), 0x62);
  EXPECT_EQ(nak_syndrome(NakCode::kRemoteOperationalError), 0x63);
  EXPECT_EQ(nak_syndrome(NakCode::kInvalidRdRequest), 0x64);
  for (unsigned timer = 0; timer < 32; ++timer) {
    const uint8_t syndrome = rnr_syndrome(static_cast<uint8_t>(timer));
    EXPECT_EQ(aeth_kind(syndrome), AethKind::kRnrNak);
    EXPECT_EQ(aeth_value(syndrome), timer);
  }
}

TEST(Aeth, rnr_timer_codes_range_from_10_us_to_655_ms) {
  EXPECT_EQ(rnr_delay(0), 655'360us);
  EXPECT_EQ(rnr_delay(1), 10us);
  EXPECT_EQ(rnr_delay(2), 20us);
  EXPECT_EQ(rnr_delay(14), 1280us);
  EXPECT_EQ(rnr_delay(26), 81'920us);
  EXPECT_EQ(rnr_delay(27), 122'880us);
  EXPECT_EQ(rnr_delay(31), 491'520us);
  for (unsigned code = 2; code < 32; ++code) {
    EXPECT_GT(rnr_delay(static_cast<uint8_t>(code)), rnr_delay(static_cast<uint8_t>(code - 1))) << code;
  }
  for (unsigned code = 4; code < 32; ++code) {  // from 20 us on, every second code doubles
    EXPECT_EQ(rnr_delay(static_cast<uint8_t>(code)), 2 * rnr_delay(static_cast<uint8_t>(code - 2))) << code;
  }
  EXPECT_GT(rnr_delay(0), rnr_delay(31));
  EXPECT_EQ(rnr_delay(32), rnr_delay(0));  // only 5 bits are used
}

TEST(Aeth, ack_timeout_doubles_with_each_code_and_is_unlimited_for_0) {
  EXPECT_EQ(ack_timeout(0), kNever);
  EXPECT_EQ(ack_timeout(1), 8192ns);
  EXPECT_EQ(ack_timeout(14), 67'108'864ns);
  EXPECT_EQ(ack_timeout(31), Nanos{4096LL << 31});
  for (unsigned code = 2; code < 32; ++code) {
    EXPECT_EQ(ack_timeout(static_cast<uint8_t>(code)), 2 * ack_timeout(static_cast<uint8_t>(code - 1)));
  }
}

}  // namespace
}  // namespace roci
