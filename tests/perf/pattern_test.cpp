#include "roci-perf/measurement/pattern.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "base/rng.hpp"

namespace roci::perf {
namespace {

std::vector<uint8_t> filled(uint64_t seed, uint32_t stream, uint64_t message, size_t size) {
  std::vector<uint8_t> data(size);
  Pattern(seed).fill(data, stream, message);
  return data;
}

TEST(Pattern, accepts_filled_data_of_every_size) {
  for (size_t size = 0; size < 100; ++size) {
    EXPECT_FALSE(Pattern(1).check(filled(1, 0, 7, size), 0, 7)) << size;
  }
}

// Any single flipped bit is detected, with its position and both values.
TEST(Pattern, detects_every_flipped_bit) {
  const auto good = filled(1, 2, 3, 61);
  for (size_t at = 0; at < good.size(); ++at) {
    for (unsigned bit = 0; bit < 8; ++bit) {
      auto bad = good;
      bad[at] = static_cast<uint8_t>(bad[at] ^ (1U << bit));
      const auto wrong = Pattern(1).check(bad, 2, 3);
      ASSERT_TRUE(wrong) << at;
      EXPECT_EQ(wrong->offset, at);
      EXPECT_EQ(wrong->wrong, 1U);
      EXPECT_EQ(wrong->size, good.size());
      EXPECT_EQ(wrong->expected, good[at]);
      EXPECT_EQ(wrong->got, bad[at]);
    }
  }
}

// Data of the previous message, of another queue pair or of another seed is detected, and so is memory never written.
TEST(Pattern, detects_stale_and_misplaced_data) {
  const Pattern pattern(1);
  EXPECT_TRUE(pattern.check(filled(1, 0, 6, 64), 0, 7));
  EXPECT_TRUE(pattern.check(filled(1, 1, 7, 64), 0, 7));
  EXPECT_TRUE(pattern.check(filled(2, 0, 7, 64), 0, 7));
  EXPECT_TRUE(pattern.check(std::vector<uint8_t>(64), 0, 7));
}

// Two packets that changed places are detected: within 1 MiB, each 8-byte word differs from the words at any packet
// distance.
TEST(Pattern, detects_swapped_packets) {
  auto data = filled(1, 0, 0, 1 << 20);
  for (const size_t mtu : {256U, 512U, 1024U, 2048U, 4096U}) {
    auto swapped = data;
    std::swap_ranges(swapped.begin(), swapped.begin() + static_cast<ptrdiff_t>(mtu),
                     swapped.begin() + static_cast<ptrdiff_t>(mtu));
    const auto wrong = Pattern(1).check(swapped, 0, 0);
    ASSERT_TRUE(wrong) << mtu;
    EXPECT_LT(wrong->offset, 8U);
    EXPECT_GT(wrong->wrong, mtu);
  }
}

TEST(Pattern, error_names_message_offset_and_bytes) {
  const Mismatch one{4096, 1, 65536, 0x3c, 0};
  EXPECT_EQ(one.sentence(2, 17),
            "message 17 of queue pair 2 is wrong at offset 4096 of 65536: expected 0x3c, got 0x00 (1 byte "
            "differs)");
  const Mismatch more{0, 12, 64, 1, 2};
  EXPECT_NE(more.sentence(0, 0).find("(12 bytes differ)"), std::string::npos);
}

}  // namespace
}  // namespace roci::perf
