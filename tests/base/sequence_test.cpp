#include "base/sequence.hpp"

#include <gtest/gtest.h>

#include "base/rng.hpp"

namespace roci {
namespace {

struct PsnRow {
  uint32_t a, b;
  int32_t distance;  // a - b
};

TEST(Psn, distance_wraps_at_half_of_the_range) {
  const PsnRow rows[] = {
      {0, 0, 0},
      {1, 0, 1},
      {0, 1, -1},
      {0, 0xffffff, 1},
      {0xffffff, 0, -1},
      {5, 0xfffffb, 10},
      {0x7fffff, 0, 0x7fffff},   // the maximum distance ahead
      {0x800000, 0, -0x800000},  // half of the range counts as behind
      {0, 0x800000, -0x800000},
      {0, 0x800001, 0x7fffff},
      {0x800001, 1, -0x800000},
  };
  for (const PsnRow& row : rows) {
    EXPECT_EQ(Psn{row.a} - Psn{row.b}, row.distance) << std::hex << row.a << " - " << row.b;
  }
}

TEST(Psn, arithmetic_stays_in_24_bits) {
  EXPECT_EQ((Psn{0xffffff} + 1).value(), 0U);
  EXPECT_EQ((Psn{0} - 1).value(), 0xffffffU);
  EXPECT_EQ(Psn{0x1000001}.value(), 1U);
  Rng rng{1};
  for (int i = 0; i < 100'000; ++i) {
    const Psn base{static_cast<uint32_t>(rng.next())};
    const auto n = static_cast<uint32_t>(rng.below(Psn::kHalf));
    EXPECT_EQ((base + n) - base, static_cast<int32_t>(n));
    EXPECT_EQ((base + n) - n, base);
  }
}

TEST(Psn, range_check_handles_wraparound) {
  EXPECT_TRUE(is_within(Psn{0}, Psn{0xfffffe}, Psn{2}));
  EXPECT_TRUE(is_within(Psn{0xfffffe}, Psn{0xfffffe}, Psn{2}));
  EXPECT_TRUE(is_within(Psn{2}, Psn{0xfffffe}, Psn{2}));
  EXPECT_FALSE(is_within(Psn{3}, Psn{0xfffffe}, Psn{2}));
  EXPECT_FALSE(is_within(Psn{0xfffffd}, Psn{0xfffffe}, Psn{2}));
}

TEST(Lsn, unwraps_the_low_bits_to_the_nearest_value) {
  struct Row {
    uint32_t wire;
    uint64_t near, full;
  };
  const Row rows[] = {
      {0, 0, 0},
      {5, 0xffffffffULL, 0x100000005ULL},           // just above 4 GiB
      {0xfffffff0, 0x100000010ULL, 0xfffffff0ULL},  // a value from before the wrap
      {0x7fffffff, 0x100000000ULL, 0x17fffffffULL},
      {0x80000001, 0x100000000ULL, 0x80000001ULL},
      {0x12345678, 0xabc12345600ULL, 0xabc12345678ULL},
  };
  for (const Row& row : rows)
    EXPECT_EQ(unwrap_lsn(row.wire, Lsn{row.near}).value(), row.full) << std::hex << row.wire;
}

TEST(Msn, wraps_to_zero) {
  Msn msn{0xffffff};
  ++msn;
  EXPECT_EQ(msn.value(), 0U);
}

}  // namespace
}  // namespace roci
