// The ring between two threads: compared with a standard queue, and with one thread at each end.
#include "base/containers/spsc_ring.hpp"

#include <gtest/gtest.h>

#include <array>
#include <deque>
#include <thread>

#include "base/rng.hpp"

namespace roci {
namespace {

TEST(SpscRing, agrees_with_bounded_deque) {
  Rng rng{3};
  for (const uint32_t capacity : {1U, 2U, 8U, 100U}) {
    SpscRing<uint64_t> ring(capacity);
    std::deque<uint64_t> model;
    uint64_t next = 0;
    for (int i = 0; i < 20'000; ++i) {
      std::array<uint64_t, 24> burst;
      const auto wanted = static_cast<size_t>(rng.between(0, burst.size()));
      if (rng.chance(0.5)) {
        for (size_t k = 0; k < wanted; ++k) burst[k] = next + k;
        const size_t room = ring.capacity() - model.size();
        ASSERT_EQ(ring.push({burst.data(), wanted}), std::min(wanted, room));
        for (size_t k = 0; k < std::min(wanted, room); ++k) model.push_back(next++);
      } else {
        const uint32_t got = ring.pop({burst.data(), wanted});
        ASSERT_EQ(got, std::min(wanted, model.size()));
        for (uint32_t k = 0; k < got; ++k) {
          ASSERT_EQ(burst[k], model.front());
          model.pop_front();
        }
      }
      ASSERT_EQ(ring.size(), model.size());
      ASSERT_EQ(ring.empty(), model.empty());
    }
  }
}

TEST(SpscRing, capacity_is_at_least_the_requested_size) {
  EXPECT_EQ(SpscRing<int>(512).capacity(), 512U);
  EXPECT_EQ(SpscRing<int>(513).capacity(), 1024U);
  EXPECT_GE(SpscRing<int>(0).capacity(), 1U);
}

TEST(SpscRing, transfers_every_element_once_in_order_between_two_threads) {
  constexpr uint64_t kCount = 200'000;
  SpscRing<uint64_t> ring(64);
  std::thread producer([&] {
    std::array<uint64_t, 7> burst;
    for (uint64_t next = 0; next < kCount;) {
      const size_t count = std::min<uint64_t>(burst.size(), kCount - next);
      for (size_t i = 0; i < count; ++i) burst[i] = next + i;
      const uint32_t taken = ring.push({burst.data(), count});
      next += taken;
      if (taken == 0) std::this_thread::yield();
    }
  });
  uint64_t expected = 0;
  std::array<uint64_t, 5> burst;
  while (expected < kCount) {
    const uint32_t got = ring.pop(burst);
    for (uint32_t i = 0; i < got; ++i) EXPECT_EQ(burst[i], expected++);
    if (got == 0) std::this_thread::yield();
  }
  producer.join();
  EXPECT_TRUE(ring.empty());
}

}  // namespace
}  // namespace roci
