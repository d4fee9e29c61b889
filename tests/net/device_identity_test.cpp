#include "net/device_identity.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace roci {
namespace {

using testing::HasSubstr;

TEST(DeviceIdentity, parses_decimal_and_hexadecimal_numbers) {
  EXPECT_EQ(*parse_identity("0x2c9:4119"), (DeviceIdentity{0x2c9, 4119}));
  EXPECT_EQ(*parse_identity("5348:0x16D7"), (DeviceIdentity{0x14e4, 0x16d7}));
  EXPECT_EQ(*parse_identity("0xffffff:2147483647"), (DeviceIdentity{0xffffff, 0x7fffffff}));
  EXPECT_EQ(*parse_identity(""), (DeviceIdentity{0xffffff, 0})) << "that of Linux's soft-RoCE";
}

TEST(DeviceIdentity, reports_the_reason_for_invalid_text) {
  const auto complaint = [](const char* text) { return parse_identity(text).error().message; };
  EXPECT_THAT(complaint("mlx5"), HasSubstr("'mlx5' is not VENDOR:PART, like 0x2c9:4119"));
  EXPECT_THAT(complaint("0x2c9"), HasSubstr("is not VENDOR:PART"));
  EXPECT_THAT(complaint("0x1000000:1"),
              HasSubstr("vendor: '0x1000000' is not a whole number from 0 to 16777215"));
  EXPECT_THAT(complaint("1:2:3"), HasSubstr("part: '2:3' is not a whole number"));
  EXPECT_THAT(complaint("1:2147483648"), HasSubstr("part: "));
  EXPECT_THAT(complaint(":"), HasSubstr("vendor: "));
}

}  // namespace
}  // namespace roci
