#include "wire/icrc.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace roci {
namespace {

std::vector<uint8_t> from_hex(std::string_view text) {
  std::vector<uint8_t> out;
  for (size_t i = 0; i + 1 < text.size(); i += 2) {
    out.push_back(static_cast<uint8_t>(std::stoi(std::string(text.substr(i, 2)), nullptr, 16)));
  }
  return out;
}

// IPv4 10.0.0.1 to 10.0.0.2, an ACK; the ICRC must not see FECN or BECN.
TEST(Icrc, golden_ack_is_the_same_with_fecn_and_becn) {
  for (const char* congestion : {"00", "40", "80"}) {
    std::string hex =
        "020000000002020000000001"
        "0800"
        "4502003000014000401126b80a0000010a000002"
        "c00012b7001c0000"
        "1140ffff" +
        std::string(congestion) +
        "00001100123456"
        "1f000005";
    auto bytes = from_hex(hex);
    bytes.resize(bytes.size() + 4);
    const FrameView view =
        parse_frame(bytes.data(), static_cast<uint32_t>(bytes.size()), static_cast<uint32_t>(bytes.size()));
    ASSERT_EQ(view.kind, FrameKind::kRoce) << frame_kind_name(view.kind);
    uint8_t stored[4];
    store_icrc(stored, compute_icrc(view));
    EXPECT_EQ(stored[0], 0x6d);
    EXPECT_EQ(stored[1], 0x4a);
    EXPECT_EQ(stored[2], 0xb8);
    EXPECT_EQ(stored[3], 0x6b);
  }
}

}  // namespace
}  // namespace roci
