#include "transport/completion_ring.hpp"

#include <gtest/gtest.h>

#include <array>

namespace roci {
namespace {

ibv_wc completion(uint64_t wr_id) {
  ibv_wc wc{};
  wc.wr_id = wr_id;
  return wc;
}

// Fill the ring, take half, fill it again, and so on, while the indices run over 2^32. Expect every completion once
// and in order, though the capacity does not divide 2^32.
TEST(CompletionRing, keeps_the_order_where_its_indices_wrap) {
  constexpr uint32_t kCapacity = 100;
  CompletionRing ring(kCapacity, UINT32_MAX - 250);
  uint64_t pushed = 0;
  uint64_t taken = 0;
  for (int round = 0; round < 12; ++round) {
    while (pushed - taken < kCapacity) ASSERT_TRUE(ring.push(completion(pushed++), false));
    std::array<ibv_wc, kCapacity / 2> out;
    ASSERT_EQ(ring.poll(out.size(), out.data()), static_cast<int>(out.size()));
    for (const ibv_wc& wc : out) ASSERT_EQ(wc.wr_id, taken++);
  }
}

// One more than the capacity that was asked for. Expect it refused, and an error once the others are taken.
TEST(CompletionRing, holds_exactly_what_was_asked_for) {
  CompletionRing ring(5);
  for (uint64_t i = 0; i < 5; ++i) EXPECT_TRUE(ring.push(completion(i), false));
  EXPECT_FALSE(ring.push(completion(5), false));
  std::array<ibv_wc, 8> out;
  EXPECT_EQ(ring.poll(8, out.data()), 5);
  EXPECT_EQ(ring.poll(8, out.data()), -1);
}

}  // namespace
}  // namespace roci
