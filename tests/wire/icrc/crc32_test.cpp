#include "wire/icrc/crc32.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "base/rng.hpp"
#include "wire/icrc/icrc.hpp"

namespace roci {
namespace {

// The check value of CRC-32 (ISO-HDLC).
TEST(Crc32, equals_the_check_value) {
  const uint8_t digits[] = {'1', '2', '3', '4', '5', '6', '7', '8', '9'};
  EXPECT_EQ(crc32_continue(0, digits, sizeof digits), 0xcbf43926U);
  EXPECT_EQ(crc32_continue_with_tables(0, digits, sizeof digits), 0xcbf43926U);
}

TEST(Crc32, equals_isal_for_each_length_alignment_and_state) {
  Rng rng(20261127);
  std::vector<uint8_t> bytes(5'000);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(rng.next());
  for (size_t length = 0; length < 4'400; ++length) {
    const uint8_t* data = &bytes[rng.below(65)];
    const auto state = static_cast<uint32_t>(rng.next());
    const uint32_t expected = icrc_continue(state, data, length);
    ASSERT_EQ(crc32_continue(state, data, length), expected) << length << " bytes";
    ASSERT_EQ(crc32_continue_with_tables(state, data, length), expected) << length << " bytes";
  }
}

}  // namespace
}  // namespace roci
